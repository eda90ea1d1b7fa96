//! An isolated environment for one cluster: home, state directory, temporary files, and a mark on
//! every process. The cluster is removed with the test in any case.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Label of containers of kind.
const KIND_LABEL: &str = "io.x-k8s.kind.cluster";
/// Environment variable that marks the processes of a test_cluster.
const MARK: &str = "EVICTLAB_TEST_CLUSTER";
/// Time that resources of other processes on the machine may remain.
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads a number from an environment variable.
pub fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns a kubelet whose node image is in Docker, or why no test is possible.
pub fn kubelet() -> Result<String, String> {
    let quiet = |command: &mut Command| command.stderr(Stdio::null()).stdin(Stdio::null()).output().ok();
    quiet(Command::new("kind").arg("version")).ok_or("the command `kind` is not here")?;
    let listed = quiet(Command::new("docker").args(["image", "ls", "--format", "{{.Tag}}", "kindest/node"]));
    let listed = listed.filter(|listed| listed.status.success()).ok_or("no Docker daemon answers")?;
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut tags: Vec<&str> = listed.lines().filter(|tag| tag.starts_with("v1.")).collect();
    // Prefers the version that starts fastest.
    tags.sort_by_key(|tag| !tag.starts_with("v1.32."));
    Ok(tags.first().ok_or("no node image (kindest/node) is in Docker")?.to_string())
}

fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// Volumes without a container, which only a failed run leaves behind.
fn loose_volumes() -> BTreeSet<String> {
    lines(&docker(&["volume", "ls", "--quiet", "--filter", "dangling=true"]))
}

/// Returns a name that is unique on this machine.
fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("evictlab-{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Environment of a cluster.
pub struct TestCluster {
    /// Name of the cluster.
    pub cluster: String,
    folder: TempDir,
    volumes: BTreeSet<String>,
}

impl TestCluster {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for inner in ["home", "tmp"] {
            fs::create_dir(folder.path().join(inner)).unwrap();
        }
        fs::write(folder.path().join("kubeconfig"), "mine").unwrap();
        Self { cluster: unique("test"), folder, volumes: loose_volumes() }
    }

    fn command(&self) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env_remove("EVICTLAB_CASES")
            .env("HOME", at("home"))
            .env("TMPDIR", at("tmp"))
            .env("KUBECONFIG", at("kubeconfig"))
            .env("EVICTLAB_STATE_DIR", at("state"))
            .env(MARK, &self.cluster);
        command
    }

    /// Runs `evictlab`, requires success, and returns its standard output.
    pub fn evictlab(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success(), "evictlab {arguments:?}: {}\n{out}{err}", output.status);
        out
    }

    /// Runs `gc` only for this cluster.
    pub fn gc(&self) -> String {
        self.gc_with(&[])
    }

    /// Runs `gc` for this cluster and others, which may not exist.
    pub fn gc_with(&self, others: &[&str]) -> String {
        let arguments = [&["gc", &self.cluster], others].concat();
        let output = self.command().args(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        let is_expected = output.status.success() || err.contains("failed to find cluster");
        assert!(is_expected, "{}\n{out}{err}", output.status);
        out
    }

    /// Runs `gc` for this cluster in another namespace of process IDs, as another container would;
    /// `None` if this user must not create one.
    pub fn gc_elsewhere(&self) -> Option<String> {
        let unshare = ["--pid", "--fork"];
        let allowed = Command::new("unshare").args(unshare).arg("true").stderr(Stdio::null()).status();
        allowed.ok().filter(ExitStatus::success)?;
        let own = self.command();
        let mut command = Command::new("unshare");
        command.args(unshare).arg(own.get_program()).args(["gc", &self.cluster]);
        command.stdin(Stdio::null()).current_dir(self.folder.path());
        for (name, value) in own.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    }

    /// Creates the cluster and keeps it.
    pub fn create(&self) {
        let kubelet = kubelet().unwrap();
        self.evictlab(&[
            "cluster",
            "create",
            "--backend",
            "kind",
            "--name",
            &self.cluster,
            "--kubelet",
            &kubelet,
        ]);
    }

    /// Starts a run that creates the cluster.
    pub fn run(&self) -> Run {
        self.start(&["--name", &self.cluster, "--kubelet", &kubelet().unwrap()])
    }

    /// Starts a run on the kept cluster.
    pub fn run_on_kept(&self) -> Run {
        self.start(&["--cluster", &self.cluster])
    }

    fn start(&self, arguments: &[&str]) -> Run {
        let results = self.folder.path().join(unique("results"));
        let output = results.with_extension("output");
        let file = fs::File::create(&output).unwrap();
        let mut command = self.command();
        command
            .args(["run", "--backend", "kind", "--focus", "sidecars-are-named", "--output-dir"])
            .arg(&results)
            .args(arguments);
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Run { began: Instant::now(), child: command.spawn().unwrap(), results, output, status: None }
    }

    fn containers(&self) -> BTreeSet<String> {
        let label = format!("label={KIND_LABEL}={}", self.cluster);
        lines(&docker(&["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]))
    }

    /// Command lines of the processes of this test_cluster, from `/proc` if it exists.
    fn processes(&self) -> BTreeSet<String> {
        let mark = format!("{MARK}={}", self.cluster);
        let marked = |pid: &str| -> Option<String> {
            pid.parse::<u32>().ok()?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            environment.split(|byte| *byte == 0).find(|variable| *variable == mark.as_bytes())?;
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some(format!("process {pid}: {}", String::from_utf8_lossy(&command).replace('\0', " ")))
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| marked(entry.file_name().to_str()?)).collect()
    }

    fn files(&self) -> BTreeSet<String> {
        let within = |name: &'static str| {
            let entries = fs::read_dir(self.folder.path().join(name)).into_iter().flatten().flatten();
            entries.map(move |entry| format!("{name}/{}", entry.file_name().to_string_lossy()))
        };
        let all = ["home", "tmp", "state"].into_iter().flat_map(within);
        // The lock of the directory stays: a process could hold the one that another removes.
        all.filter(|file| file != "state/.owners.lock").collect()
    }

    /// Resources with the mark or name of this test_cluster.
    fn own(&self) -> BTreeSet<String> {
        [self.containers(), self.processes(), self.files()].into_iter().flatten().collect()
    }

    /// All resources of the cluster and its runs.
    pub fn left(&self) -> BTreeSet<String> {
        let volumes = loose_volumes();
        let fresh = volumes.difference(&self.volumes).map(|name| format!("volume {name}"));
        self.own().into_iter().chain(fresh).collect()
    }

    /// Requires that no resources exist or appear later.
    pub fn assert_nothing_is_left(&self) {
        assert!(self.own().is_empty(), "left: {:?}", self.own());
        let began = Instant::now();
        // Other processes may have volumes without a container for a short time.
        while !self.left().is_empty() {
            assert!(began.elapsed() < LEFTOVER_TIMEOUT, "left: {:?}", self.left());
            std::thread::sleep(Duration::from_millis(500));
        }
        std::thread::sleep(Duration::from_secs(3));
        assert!(self.own().is_empty(), "came late: {:?}", self.own());
        assert_eq!(fs::read_to_string(self.folder.path().join("kubeconfig")).unwrap(), "mine");
    }

    /// Returns the kubelet configuration and flags of the worker with their modes, and the files
    /// next to them.
    pub fn settings(&self) -> String {
        const SHOW: &str = "cd /var/lib/kubelet; stat -c '%n %a %U' config.yaml /etc/default/kubelet; cat config.yaml \
            /etc/default/kubelet; ls -d config.yaml* /etc/default/kubelet* /var/lib/evictlab*; true";
        docker(&["exec", &format!("{}-worker", self.cluster), "sh", "-c", SHOW])
    }

    /// Returns the type of the worker's device for its kubelet: `loop` is a file system of its own.
    pub fn disk_of_the_worker(&self) -> String {
        let source = ["findmnt", "--noheadings", "--output", "SOURCE", "--target", "/var/lib/kubelet"];
        let found = docker(&[&["exec", &format!("{}-worker", self.cluster)][..], &source].concat());
        found.trim().trim_start_matches("/dev/").trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
    }

    /// Starts the container of the control plane only.
    pub fn start_the_control_plane(&self) {
        docker(&["start", &format!("{}-control-plane", self.cluster)]);
    }

    /// Returns the namespaces of runs.
    pub fn namespaces(&self) -> BTreeSet<String> {
        let node = format!("{}-control-plane", self.cluster);
        let kubectl = [
            "kubectl",
            "--kubeconfig",
            "/etc/kubernetes/admin.conf",
            "get",
            "namespaces",
            "--output",
            "name",
        ];
        let listed = docker(&[&["exec", node.as_str()][..], &kubectl].concat());
        lines(&listed).into_iter().filter(|name| name.contains("evictlab")).collect()
    }

    /// Waits until the API server has removed deleted namespaces.
    pub fn assert_no_namespaces(&self) {
        let began = Instant::now();
        while !self.namespaces().is_empty() {
            assert!(began.elapsed() < LEFTOVER_TIMEOUT, "left: {:?}", self.namespaces());
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        // Independent of the tested code. A running `docker run` must end first: otherwise its
        // container still appears.
        let began = Instant::now();
        while began.elapsed() < LEFTOVER_TIMEOUT
            && !(self.processes().is_empty() && self.containers().is_empty())
        {
            for process in self.processes().iter().filter(|process| !process.contains(": docker ")) {
                let pid = process.split([' ', ':']).nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
                pid.map(|pid| kill_process(pid, Signal::KILL));
            }
            for container in self.containers() {
                // The container may already be removed.
                let _gone = Command::new("docker").args(["rm", "--force", "--volumes", &container]).output();
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// A running run.
pub struct Run {
    began: Instant,
    child: Child,
    results: PathBuf,
    output: PathBuf,
    status: Option<ExitStatus>,
}

impl Run {
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Waits until this time after the start.
    pub fn wait_until(&self, moment: f64) {
        std::thread::sleep(Duration::from_secs_f64((moment - self.seconds()).max(0.0)));
    }

    /// Waits until the run reports a step; fails if the run ends first.
    pub fn wait_for(&mut self, step: &str) {
        while !self.events().contains(step) {
            assert!(self.runs(), "it ended before `{step}`: {}", self.output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn runs(&mut self) -> bool {
        self.status = self.status.or(self.child.try_wait().unwrap());
        self.status.is_none()
    }

    /// Returns whether only reports remain to be written.
    pub fn is_over(&mut self) -> bool {
        !self.runs() || self.events().contains("\"cluster-deleted\"")
    }

    pub fn send(&mut self, signal: Signal) {
        if self.runs() {
            kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
        }
    }

    pub fn wait(&mut self) -> ExitStatus {
        let status = self.status.unwrap_or_else(|| self.child.wait().unwrap());
        self.status = Some(status);
        // A crash is never expected.
        assert!(!status.core_dumped());
        status
    }

    /// Returns whether the reports were started.
    pub fn has_begun(&self) -> bool {
        self.results.join("started.json").exists()
    }

    /// Returns the output.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    fn events(&self) -> String {
        fs::read_to_string(self.results.join("artifacts/events.jsonl")).unwrap_or_default()
    }

    /// Returns the last step before the interrupt.
    pub fn last_step(&self) -> String {
        let events = self.events();
        let events_of_run =
            events.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let before = events_of_run.take_while(|event| event["type"] != "interrupted");
        let Some(last) = before.last() else { return "no step yet".to_owned() };
        let text = last["text"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
        format!("{} {}", last["type"].as_str().unwrap_or_default(), text.trim())
    }

    /// Requires complete reports with this result.
    pub fn assert_reported(&self, result: &str) {
        let read = |name: &str| fs::read_to_string(self.results.join(name)).unwrap_or_default();
        let finished: serde_json::Value = serde_json::from_str(&read("finished.json")).unwrap_or_default();
        assert_eq!(finished["result"], result, "{}", self.output());
        assert!(read("artifacts/junit_evictlab.xml").trim_end().ends_with("</testsuites>"));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The run may have ended; a failed test kills it.
        if self.runs() {
            let _gone = self.child.kill();
            let _status = self.child.wait();
        }
    }
}

/// A container with the label of kind that evictlab did not create.
pub struct ForeignCluster {
    pub cluster: String,
}

impl ForeignCluster {
    pub fn new() -> Self {
        let cluster = unique("foreign");
        let label = format!("{KIND_LABEL}={cluster}");
        let image = format!("kindest/node:{}", kubelet().unwrap());
        docker(&["create", "--label", &label, "--name", &cluster, &image]);
        Self { cluster }
    }

    pub fn is_there(&self) -> bool {
        !docker(&["ps", "--all", "--quiet", "--filter", &format!("name={}", self.cluster)]).is_empty()
    }
}

impl Drop for ForeignCluster {
    fn drop(&mut self) {
        docker(&["rm", "--force", "--volumes", &self.cluster]);
    }
}
