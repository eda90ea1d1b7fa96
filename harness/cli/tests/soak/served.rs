//! The served cluster, and processes of evictlab in an environment of their own.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::plan::{self, Action, ServerFault};

/// Environment variable that marks the processes of a soak.
const MARK: &str = "EVICTLAB_TEST_SOAK";
/// Time after which a process hangs: much more than the deadline of each case and the time for
/// which a run tries to delete its namespaces.
const HANG_TIMEOUT: Duration = Duration::from_secs(900);

/// Interval of collections beside a run on the existing cluster: longer than the Lease of a killed
/// run counts.
const COLLECT_INTERVAL: Duration = Duration::from_secs(35);

/// Home, state and temporary files of the processes of a soak.
pub struct Place {
    folder: TempDir,
    mark: String,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for inner in ["home", "tmp", "state", "runs"] {
            fs::create_dir(folder.path().join(inner)).unwrap();
        }
        Self { folder, mark: std::process::id().to_string() }
    }

    /// Path of the directory of a run.
    pub fn run_dir(&self, name: &str) -> PathBuf {
        self.folder.path().join("runs").join(name)
    }

    /// A command with the environment of the soak.
    pub fn command(&self, program: &str) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(program);
        command.current_dir(at("runs")).stdin(Stdio::null()).env_remove("EVICTLAB_CASES");
        command.env("HOME", at("home")).env("TMPDIR", at("tmp")).env("EVICTLAB_STATE_DIR", at("state"));
        command.env("KUBECONFIG", "/nonexistent").env(MARK, &self.mark);
        command
    }

    /// Files outside the directories of the runs, and processes.
    pub fn leftovers(&self) -> BTreeSet<String> {
        let files = ["home", "tmp", "state"].into_iter().flat_map(|name| {
            let entries = fs::read_dir(self.folder.path().join(name)).unwrap();
            entries.map(move |entry| format!("{name}/{}", entry.unwrap().file_name().to_string_lossy()))
        });
        files.chain(self.processes()).collect()
    }

    fn processes(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.mark);
        let command = |pid: &str| {
            pid.parse::<u32>().ok()?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            environment.split(|byte| *byte == 0).find(|variable| *variable == mark.as_bytes())?;
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some(format!("process {pid}: {}", String::from_utf8_lossy(&line).replace('\0', " ")))
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| command(entry.file_name().to_str()?)).collect()
    }
}

/// A served embedded cluster with two nodes of 1.32 and two of 1.31.
pub struct Served {
    server: Child,
    /// Path of its kubeconfig.
    pub kubeconfig: String,
    /// Start of the cluster, from which the times of its faults count.
    pub started: Instant,
}

impl Served {
    pub fn start(place: &Place, seed: u64, faults: &[ServerFault]) -> Self {
        let mut command = place.command(env!("CARGO_BIN_EXE_evictlab"));
        command.args(["cluster", "create", "--backend", "embedded", "--nodes", "2"]);
        command.args(["--kubelet", "v1.32", "--kubelet", "v1.31", "--seed", &(seed % 1000).to_string()]);
        command.args(faults.iter().flat_map(|fault| ["--fault", &fault.script]));
        let started = Instant::now();
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let kubeconfig =
            lines.find_map(|line| line.unwrap().strip_prefix("export KUBECONFIG=").map(str::to_owned));
        Self { server, kubeconfig: kubeconfig.unwrap(), started }
    }

    /// Ends the server, which deletes its kubeconfig.
    pub fn stop(mut self) {
        kill_process(Pid::from_child(&self.server), Signal::INT).unwrap();
        assert!(self.server.wait().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        let _gone = self.server.kill();
        let _ended = self.server.wait();
    }
}

/// Result of an action.
pub struct Ended {
    pub status: ExitStatus,
    /// Start and end.
    pub span: (Instant, Instant),
    /// The last signal that reached the process.
    pub signal: Option<Signal>,
    /// Directory of the run; does not exist for other commands.
    pub run_dir: PathBuf,
    /// Standard output and error.
    pub output: String,
}

/// Performs an action of a round to its end.
pub fn perform(place: &Place, kubeconfig: &str, action: &Action, name: &str) -> Ended {
    std::thread::sleep(action.start);
    let run_dir = place.run_dir(name);
    let said = run_dir.with_extension("said");
    let file = File::create(&said).unwrap();
    let mut command = command(place, kubeconfig, &action.command, &run_dir);
    let began = Instant::now();
    let mut child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let mut signal = None;
    for stop in &action.stops {
        std::thread::sleep((began + stop.after).saturating_duration_since(Instant::now()));
        if child.try_wait().unwrap().is_none() {
            signal_program(&child, stop.signal);
            signal = Some(stop.signal);
        }
    }
    // A run waits for the pods of killed runs, and names this command.
    let collect = || {
        let gc = plan::Command::Gc { dry: false, elsewhere: false };
        let mut gc = self::command(place, kubeconfig, &gc, &run_dir);
        let _status = gc.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    };
    let status = wait(&mut child, action, collect);
    let output = fs::read_to_string(&said).unwrap();
    Ended { status, span: (began, Instant::now()), signal, run_dir, output }
}

/// Sends a signal to evictlab; below `unshare`, to its child.
fn signal_program(child: &Child, signal: Signal) {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
    let is_unshare =
        fs::read_to_string(format!("/proc/{}/comm", child.id())).is_ok_and(|name| name == "unshare\n");
    let inner = children.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    let pid = inner.filter(|_| is_unshare).unwrap_or(Pid::from_child(child));
    // It may have ended meanwhile.
    let _gone = kill_process(pid, signal);
}

fn command(place: &Place, kubeconfig: &str, command: &plan::Command, run_dir: &Path) -> Command {
    let evictlab = env!("CARGO_BIN_EXE_evictlab");
    let existing = ["--backend", "existing", "--kubeconfig", kubeconfig];
    match command {
        plan::Command::Existing(arguments) => {
            let mut run = place.command(evictlab);
            run.arg("run").args(arguments).args(existing).arg("--output-dir").arg(run_dir);
            run
        }
        plan::Command::Model(arguments, fault) => {
            let mut run = place.command(evictlab);
            run.arg("run").args(arguments).args(fault.iter().flat_map(|fault| ["--fault", fault]));
            run.arg("--output-dir").arg(run_dir);
            run
        }
        plan::Command::Gc { dry, elsewhere } => {
            let mut gc = if *elsewhere && can_unshare() {
                let mut unshare = place.command("unshare");
                unshare.args(["--pid", "--fork", "--kill-child", evictlab]);
                unshare
            } else {
                place.command(evictlab)
            };
            gc.arg("gc").args(existing).args(dry.then_some("--dry-run"));
            gc
        }
    }
}

fn can_unshare() -> bool {
    static ALLOWED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ALLOWED.get_or_init(|| {
        let tried = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

/// Waits for the end of a process, and collects beside one that takes long.
fn wait(child: &mut Child, action: &Action, collect: impl Fn()) -> ExitStatus {
    let began = Instant::now();
    let mut collected = began;
    loop {
        if matches!(action.command, plan::Command::Existing(_)) && collected.elapsed() > COLLECT_INTERVAL {
            collect();
            collected = Instant::now();
        }
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > HANG_TIMEOUT {
            child.kill().unwrap();
            panic!("it does not end: {action}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
