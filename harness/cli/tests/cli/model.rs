//! Reports about modelled kubelets, and served embedded clusters.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Returns `evictlab` in its own directory, without Docker and kind.
fn evictlab(folder: &TempDir) -> Command {
    let at = |name: &str| folder.path().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", at("bin"))
        .env("HOME", at("home"))
        .env("TMPDIR", folder.path())
        .env("DOCKER_HOST", "unix:///nonexistent")
        .stdin(Stdio::null());
    command
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = evictlab(folder);
    command.args(["run", "--output-dir", "run"]).args(arguments).output().unwrap()
}

/// Returns the content of every file below a directory by path.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry)
            } else {
                let text = fs::read_to_string(&entry).unwrap();
                all.insert(entry.strip_prefix(folder).unwrap().to_owned(), text);
            }
        }
    }
    all
}

fn started(files: &BTreeMap<PathBuf, String>) -> Value {
    serde_json::from_str(&files[Path::new("started.json")]).unwrap()
}

#[test]
fn every_report_names_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--focus", "sidecars-are-named on$|requests-decide", "--kubelet", "v1.32", "--cgroup", "v1"];
    let output = run(&folder, &arguments);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let what = "embedded cluster, cgroup v1, seed 0";
    let last = format!(
        "This was a model ({what}). On real kubelets: `evictlab run --focus 'sidecars-are-named on$|requests-decide' --backend kind --kubelet v1.32`"
    );
    assert_eq!(stdout.lines().last(), Some(last.as_str()), "{stdout}");
    let files = files(&folder.path().join("run"));
    assert_eq!(started(&files)["metadata"]["model"], what);
    let first = files[Path::new("artifacts/events.jsonl")].lines().next().unwrap().to_owned();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&first["backend"], &first["model"]["cgroup"]), (&"embedded".into(), &"v1".into()));
    let junit = &files[Path::new("artifacts/junit_evictlab.xml")];
    assert!(junit.contains(&format!("<property name=\"model\" value=\"{what}\"/>")), "{junit}");
    let summary = &files[Path::new("artifacts/message/requests-decide/v1.32.13/summary.md")];
    assert!(summary.contains(&format!("Result of a model, not of a real kubelet: {what}.")), "{summary}");
    let command = "evictlab run message/requests-decide --backend embedded --kubelet v1.32.13 --cgroup v1\n";
    assert!(summary.contains(command), "{summary}");
}

/// A process that is killed with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

#[test]
fn a_served_cluster_deletes_its_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |signal: Signal| {
        let arguments = ["cluster", "create", "--backend", "embedded", "--kubelet", "v1.31", "--nodes", "2"];
        let mut command = evictlab(&folder);
        let mut served = Served(command.args(arguments).stdout(Stdio::piped()).spawn().unwrap());
        let stdout = BufReader::new(served.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        let stdout: Vec<String> = stdout.take_while(|line| !line.starts_with("The cluster exists")).collect();
        assert_eq!(stdout[0], "model of kubelet v1.31.14: v1-31-worker, v1-31-worker2");
        let kubeconfig = stdout.iter().find_map(|line| line.strip_prefix("export KUBECONFIG=")).unwrap();
        let mode = fs::metadata(kubeconfig).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        kill_process(Pid::from_raw(served.0.id() as i32).unwrap(), signal).unwrap();
        served.0.wait().unwrap()
    };
    assert!(serve(Signal::TERM).success());
    assert!(files(folder.path()).is_empty(), "files remain");
    serve(Signal::KILL);
    assert!(!files(folder.path()).is_empty());
    evictlab(&folder).args(["cluster", "list"]).output().unwrap();
    assert!(files(folder.path()).is_empty(), "files of a killed server remain");
}
