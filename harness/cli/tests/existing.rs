//! `evictlab run --backend existing` on a stranger's cluster: an embedded one that another process serves, in the wall's time. What it says,
//! what it skips and why, and that nothing of it stays.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// An end without a pod that has to be evicted.
const QUICK: &str = "message/ephemeral-resources-are-refused";

fn evictlab(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder).env_clear().env("PATH", "/nonexistent").stdin(Stdio::null());
    command
}

/// A cluster that is somebody else's.
struct Stranger {
    folder: TempDir,
    server: Child,
    kubeconfig: String,
}

impl Stranger {
    /// With two nodes of 1.32, and one of 1.31 whose kernel has cgroup v2, too.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = evictlab(folder.path())
            .args(["cluster", "create", "--backend", "embedded"])
            .args(["--kubelet", "v1.32", "--kubelet", "v1.31", "--nodes", "2"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let told = lines.find_map(|line| line.unwrap().strip_prefix("export KUBECONFIG=").map(str::to_owned));
        Self { folder, server, kubeconfig: told.unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = evictlab(self.folder.path());
        command.args(arguments).args(["--backend", "existing", "--kubeconfig", &self.kubeconfig]);
        command
    }

    /// Exit status, standard output, standard error.
    fn said(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), out, err)
    }

    /// Runs to the end; status, output, and each case on each kubelet with its node, verdict and reason.
    fn run(&self, arguments: &[&str]) -> (i32, String, BTreeMap<(String, String), [String; 3]>) {
        let results = self.folder.path().join("results");
        let (status, out, err) = self.said(&[&["run", "--output-dir", "results"], arguments].concat());
        let mut verdicts = BTreeMap::new();
        for event in events(&results) {
            let text =
                |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            if text("/what") == "case-ended" {
                let ended = [text("/node"), text("/judgement/verdict"), text("/judgement/why")];
                verdicts.insert((text("/case"), text("/kubelet")), ended);
            }
        }
        fs::remove_dir_all(&results).unwrap_or_else(|error| panic!("{error}\n{out}\n{err}"));
        (status, out + &err, verdicts)
    }

    /// Starts a run, with its results in a place of its own, and waits until it has told of a step.
    fn start_until(&self, place: &str, arguments: &[&str], step: &str) -> (Child, PathBuf) {
        let results = self.folder.path().join(place);
        let mut run = self.command(&["run", "--output-dir", place]);
        let mut run = run.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !events(&results).iter().any(|event| event.to_string().contains(step)) {
            assert!(run.try_wait().unwrap().is_none(), "it ended before {step:?}: {:?}", events(&results));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        (run, results)
    }

    fn gc(&self) -> String {
        let (status, out, err) = self.said(&["gc"]);
        assert_eq!(status, 0, "{out}{err}");
        out
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // Its kubeconfig goes with it.
        let _gone = kill_process(Pid::from_child(&self.server), Signal::INT);
        let _status = self.server.wait();
    }
}

fn events(results: &Path) -> Vec<Value> {
    let told = fs::read_to_string(results.join("artifacts/events.jsonl")).unwrap_or_default();
    told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn cases_run_on_the_nodes_as_they_are_and_leave_nothing() {
    let stranger = Stranger::new();
    let cases = [QUICK, "message/sidecars-are-named", "message/soft-threshold-message"];
    let (status, out, verdicts) = stranger.run(&cases);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("backend existing") && !out.contains("a model"), "{out}");
    let verdict = |case: &str, kubelet: &str| verdicts[&(case.to_owned(), kubelet.to_owned())].clone();
    for kubelet in ["v1.31.14", "v1.32.13"] {
        let [node, ended, why] = verdict("ephemeral-resources-are-refused", kubelet);
        assert_eq!(ended, "passed", "{why}");
        assert!(node.starts_with(&kubelet[..5].replace('.', "-")), "{node}");
        let [node, ended, why] = verdict("sidecars-are-named", kubelet);
        assert_eq!([node.as_str(), &ended], ["", "skipped"]);
        assert_eq!(why, "it starves a node, and that takes --allow-disruption");
        let [_, ended, why] = verdict("soft-threshold-message", kubelet);
        assert_eq!(ended, "skipped");
        assert!(
            why.contains("not done on an existing cluster: evictionMaxPodGracePeriod: 3 was asked for"),
            "{why}"
        );
    }
    assert!(stranger.gc().starts_with("0 namespaces removed from "), "it was not swept");
}

#[test]
fn pressure_asks_for_leave_and_for_a_threshold() {
    let stranger = Stranger::new();
    let case = "message/sidecars-are-named";
    let why = |arguments: &[&str]| {
        let (status, out, verdicts) = stranger.run(&[&[case, "--allow-disruption"], arguments].concat());
        assert_eq!(status, 0, "{out}");
        verdicts
            .into_iter()
            .map(|((_, kubelet), [_, verdict, why])| format!("{kubelet} {verdict}: {why}"))
            .collect::<Vec<_>>()
    };
    let neither =
        "skipped: it starves a node, and this one is neither selected (--node-selector) nor tainted";
    assert_eq!(why(&[]), [format!("v1.31.14 {neither}"), format!("v1.32.13 {neither}")]);
    let [one] = &why(&["--node-selector", "kubernetes.io/hostname=v1-32-worker2"])[..] else {
        panic!("one kubelet was selected")
    };
    // kind's own configuration states thresholds on disk alone, and whoever states one has no other.
    let none = "v1.32.13 skipped: the node has no hard threshold on memory.available, and its kubelet is not reconfigured";
    assert_eq!(one, none);
}

#[test]
fn an_interrupt_sweeps_and_a_kill_leaves_what_gc_finds() {
    let stranger = Stranger::new();
    let (mut run, _) = stranger.start_until("first", &["limits/emptydir-size"], "\"observe\"");
    let live = stranger.gc();
    assert!(live.contains("left alone, its run goes on"), "{live}");
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(stranger.gc().starts_with("0 namespaces removed from "), "an interrupted run leaves nothing");
    let (mut run, results) = stranger.start_until("second", &["limits/emptydir-size"], "\"observe\"");
    run.kill().unwrap();
    run.wait().unwrap();
    let id = events(&results)[0]["run"].as_str().unwrap().to_owned();
    let (_, dry, _) = stranger.said(&["gc", "--dry-run"]);
    assert!(dry.contains(&format!("run {id}, ")) && dry.contains("would be removed"), "{dry}");
    let collected = stranger.gc();
    assert!(collected.contains(&format!("run {id}, ")) && collected.contains(": removed"), "{collected}");
    assert!(stranger.gc().starts_with("0 namespaces removed from "), "{collected}");
}

#[test]
fn a_cluster_that_cannot_be_used_is_told() {
    let stranger = Stranger::new();
    fs::write(stranger.folder.path().join("other"), "{contexts: [{name: a}]}").unwrap();
    let rows: [(&[&str], i32, &str); 5] = [
        (&["run", QUICK, "--context", "nothing"], 2, "the kubeconfig has no context named nothing; it has "),
        (
            &["run", QUICK, "--node-selector", "pool=none"],
            2,
            "the node selector pool=none selects no node of ",
        ),
        (&["run", QUICK, "--node-selector", "a b"], 2, "the node selector a b is none: "),
        (&["gc", "--kept"], 2, "--kept is for kind clusters, and this is an existing one"),
        (&["run", QUICK, "--nodes", "2"], 2, "--nodes is for clusters that evictlab makes"),
    ];
    for (arguments, code, says) in rows {
        let (status, _, error) = stranger.said(arguments);
        assert_eq!(status, code, "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
    let kubeconfig = fs::read_to_string(&stranger.kubeconfig).unwrap();
    let folder = stranger.folder.path().to_owned();
    drop(stranger);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("gone"), kubeconfig).unwrap();
    let gone = evictlab(&folder)
        .args(["run", QUICK, "--backend", "existing", "--kubeconfig", "gone"])
        .output()
        .unwrap();
    let error = String::from_utf8(gone.stderr).unwrap();
    assert_eq!(gone.status.code(), Some(4), "{error}");
    assert!(error.contains("could not list nodes: ") && error.contains("Connection refused"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}
