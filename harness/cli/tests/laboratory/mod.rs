//! A place of its own for one cluster: a home, a state folder, a folder for temporary files, a mark on every process. Whatever becomes
//! of the test, the cluster goes with it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The label of kind's containers.
const KIND_LABEL: &str = "io.x-k8s.kind.cluster";
/// The variable that marks the processes of a laboratory.
const MARK: &str = "EVICTLAB_TEST_LABORATORY";
/// How long something may stay that others on the machine may have made and will remove.
const PATIENCE: Duration = Duration::from_secs(60);

/// A number that was asked for by an environment variable.
pub fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A kubelet whose node image is in Docker, or why nothing can be run.
pub fn kubelet() -> Result<String, String> {
    let quiet = |command: &mut Command| command.stderr(Stdio::null()).stdin(Stdio::null()).output().ok();
    quiet(Command::new("kind").arg("version")).ok_or("the command `kind` is not here")?;
    let listed = quiet(Command::new("docker").args(["image", "ls", "--format", "{{.Tag}}", "kindest/node"]));
    let listed = listed.filter(|listed| listed.status.success()).ok_or("no Docker daemon answers")?;
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut tags: Vec<&str> = listed.lines().filter(|tag| tag.starts_with("v1.")).collect();
    // The one that is quickest to start, where there is a choice.
    tags.sort_by_key(|tag| !tag.starts_with("v1.32."));
    Ok(tags.first().ok_or("no node image (kindest/node) is in Docker")?.to_string())
}

fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    said
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// Volumes that no container has: nobody but a run that forgot one has a reason to make them.
fn loose_volumes() -> BTreeSet<String> {
    lines(&docker(&["volume", "ls", "--quiet", "--filter", "dangling=true"]))
}

/// Names for clusters and marks, of this process alone.
fn unique(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("evictlab-{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A cluster's whole surroundings.
pub struct Laboratory {
    /// The name of the only cluster.
    pub cluster: String,
    folder: TempDir,
    volumes: BTreeSet<String>,
}

impl Laboratory {
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

    /// Runs `evictlab` to its end, which must be a good one; returns what it printed.
    pub fn evictlab(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success(), "evictlab {arguments:?}: {}\n{out}{err}", output.status);
        out
    }

    /// Collects what is left of this cluster; a test leaves the rest of the machine alone.
    pub fn gc(&self) -> String {
        self.gc_with(&[])
    }

    /// The same, asked for others, too.
    pub fn gc_with(&self, others: &[&str]) -> String {
        self.evictlab(&[&["gc", &self.cluster], others].concat())
    }

    /// Makes the cluster, to be kept.
    pub fn create(&self) {
        self.evictlab(&["cluster", "create", "--name", &self.cluster, "--kubelet", &kubelet().unwrap()]);
    }

    /// Starts a run that makes the cluster.
    pub fn run(&self) -> Run {
        self.start(&["--name", &self.cluster, "--kubelet", &kubelet().unwrap()])
    }

    /// Starts a run on the cluster that was kept.
    pub fn run_on_kept(&self) -> Run {
        self.start(&["--cluster", &self.cluster])
    }

    fn start(&self, arguments: &[&str]) -> Run {
        let results = self.folder.path().join(unique("results"));
        let said = results.with_extension("said");
        let file = fs::File::create(&said).unwrap();
        let mut command = self.command();
        command
            .args(["run", "--backend", "kind", "--focus", "sidecars-are-named", "--output-dir"])
            .arg(&results)
            .args(arguments);
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Run { began: Instant::now(), child: command.spawn().unwrap(), results, said, status: None }
    }

    fn containers(&self) -> BTreeSet<String> {
        let label = format!("label={KIND_LABEL}={}", self.cluster);
        lines(&docker(&["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]))
    }

    /// Processes that were started in this laboratory, with their command lines. Told by `/proc`, where there is one.
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
        ["home", "tmp", "state"].into_iter().flat_map(within).collect()
    }

    /// What bears this laboratory's mark or name.
    fn own(&self) -> BTreeSet<String> {
        [self.containers(), self.processes(), self.files()].into_iter().flatten().collect()
    }

    /// All that is there of the cluster and its runs.
    pub fn left(&self) -> BTreeSet<String> {
        let volumes = loose_volumes();
        let fresh = volumes.difference(&self.volumes).map(|name| format!("volume {name}"));
        self.own().into_iter().chain(fresh).collect()
    }

    /// Nothing is there, and nothing comes any more.
    pub fn assert_nothing_is_left(&self) {
        assert!(self.own().is_empty(), "left: {:?}", self.own());
        let began = Instant::now();
        // Another's volume may be loose for a moment.
        while !self.left().is_empty() {
            assert!(began.elapsed() < PATIENCE, "left: {:?}", self.left());
            std::thread::sleep(Duration::from_millis(500));
        }
        std::thread::sleep(Duration::from_secs(3));
        assert!(self.own().is_empty(), "came late: {:?}", self.own());
        assert_eq!(fs::read_to_string(self.folder.path().join("kubeconfig")).unwrap(), "mine");
    }

    /// The worker's kubelet configuration and flags with their modes, and what lies beside them.
    pub fn settings(&self) -> String {
        const SHOW: &str = "cd /var/lib/kubelet; stat -c '%n %a %U' config.yaml /etc/default/kubelet; cat config.yaml \
            /etc/default/kubelet; ls -d config.yaml* /etc/default/kubelet* /var/lib/evictlab*; true";
        docker(&["exec", &format!("{}-worker", self.cluster), "sh", "-c", SHOW])
    }

    /// The namespaces of runs.
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

    /// The API server needs some seconds for a namespace that was deleted.
    pub fn assert_no_namespaces(&self) {
        let began = Instant::now();
        while !self.namespaces().is_empty() {
            assert!(began.elapsed() < PATIENCE, "left: {:?}", self.namespaces());
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        // By other means than those that have just failed. A `docker run` is let end: cut off, it brings its container all the same.
        let began = Instant::now();
        while began.elapsed() < PATIENCE && !(self.processes().is_empty() && self.containers().is_empty()) {
            for process in self.processes().iter().filter(|process| !process.contains(": docker ")) {
                let pid = process.split([' ', ':']).nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
                pid.map(|pid| kill_process(pid, Signal::KILL));
            }
            for container in self.containers() {
                // It may be gone by now.
                let _gone = Command::new("docker").args(["rm", "--force", "--volumes", &container]).output();
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// A run under way.
pub struct Run {
    began: Instant,
    child: Child,
    results: PathBuf,
    said: PathBuf,
    status: Option<ExitStatus>,
}

impl Run {
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Waits for a moment since its start.
    pub fn wait_until(&self, moment: f64) {
        std::thread::sleep(Duration::from_secs_f64((moment - self.seconds()).max(0.0)));
    }

    /// Waits until it has told of a step. It ends with the run.
    pub fn wait_for(&mut self, step: &str) {
        while !self.events().contains(step) {
            assert!(self.runs(), "it ended before `{step}`: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn runs(&mut self) -> bool {
        self.status = self.status.or(self.child.try_wait().unwrap());
        self.status.is_none()
    }

    /// Whether nothing is left for it to do but to report.
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
        // It has no core to dump, so that is no way to end.
        assert!(!status.core_dumped());
        status
    }

    /// Whether it had come as far as its reports.
    pub fn has_begun(&self) -> bool {
        self.results.join("started.json").exists()
    }

    /// What it printed.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    fn events(&self) -> String {
        fs::read_to_string(self.results.join("artifacts/events.jsonl")).unwrap_or_default()
    }

    /// The last thing that it told before it was interrupted.
    pub fn last_step(&self) -> String {
        let events = self.events();
        let told = events.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let before = told.take_while(|event| event["what"] != "interrupted");
        let Some(last) = before.last() else { return "nothing told yet".to_owned() };
        let text = last["text"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
        format!("{} {}", last["what"].as_str().unwrap_or_default(), text.trim())
    }

    /// The reports are whole and say how it ended.
    pub fn assert_reported(&self, result: &str) {
        let read = |name: &str| fs::read_to_string(self.results.join(name)).unwrap_or_default();
        let finished: serde_json::Value = serde_json::from_str(&read("finished.json")).unwrap_or_default();
        assert_eq!(finished["result"], result, "{}", self.said());
        assert!(read("artifacts/junit_evictlab.xml").trim_end().ends_with("</testsuites>"));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It may have ended by itself; a failed test ends it here.
        if self.runs() {
            let _gone = self.child.kill();
            let _status = self.child.wait();
        }
    }
}

/// A kind cluster, by its label, that evictlab did not make.
pub struct Stranger {
    pub cluster: String,
}

impl Stranger {
    pub fn new() -> Self {
        let cluster = unique("stranger");
        let label = format!("{KIND_LABEL}={cluster}");
        let image = format!("kindest/node:{}", kubelet().unwrap());
        docker(&["create", "--label", &label, "--name", &cluster, &image]);
        Self { cluster }
    }

    pub fn is_there(&self) -> bool {
        !docker(&["ps", "--all", "--quiet", "--filter", &format!("name={}", self.cluster)]).is_empty()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        docker(&["rm", "--force", "--volumes", &self.cluster]);
    }
}
