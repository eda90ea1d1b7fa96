//! `evictlab stress`

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use tempfile::TempDir;

const CASE: &str = include_str!("../../../../cases/message/sidecars-are-named.yaml");

/// Exit status, standard output, standard error.
fn stress(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    let output = command.args(["stress", "--backend", "embedded"]).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Returns the evidence directories of a case.
fn evidence(folder: &TempDir, case: &str) -> BTreeSet<String> {
    let dir = folder.path().join("results/latest/artifacts").join(case);
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn counts_runs_and_spreads_them_over_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["sidecars-are-named", "--kubelet", "v1.31", "--kubelet", "v1.32", "--nodes", "2", "--repeat", "12"];
    let (status, stdout, stderr) = stress(&folder, &arguments);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("| message/sidecars-are-named | reproduced ×12 | passed ×12 |"), "{stdout}");
    assert!(stdout.contains("on v1.32.13: failed: 0 of 12 (95 % interval 0 to 24 %)"), "{stdout}");
    // The evidence of the first run on each kubelet.
    let kept = evidence(&folder, "message/sidecars-are-named");
    let kubelets: Vec<&str> = kept.iter().map(|name| name.split('-').next().unwrap()).collect();
    assert_eq!(kubelets, ["v1.31.14", "v1.32.13"]);
    let events = fs::read_to_string(folder.path().join("results/latest/artifacts/events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started =
        events.iter().filter(|event| event["type"] == "case-started" && event["kubelet"] == "v1.32.13");
    let runs: Vec<(&str, u64)> =
        started.map(|event| (event["node"].as_str().unwrap(), event["attempt"].as_u64().unwrap())).collect();
    assert_eq!(runs.iter().map(|run| run.1).collect::<BTreeSet<_>>(), (1..=12).collect());
    for node in ["v1-32-worker", "v1-32-worker2"] {
        assert!(runs.iter().filter(|run| run.0 == node).count() >= 4, "{runs:?}");
    }
}

#[test]
fn stops_at_the_first_failure_and_keeps_its_evidence() {
    let folder = tempfile::tempdir().unwrap();
    // No kubelet reports this request.
    let wrong =
        CASE.split("known-bugs:").next().unwrap().replace("el1: {request: \"0\"}", "el1: {request: \"5\"}");
    assert_ne!(wrong, CASE);
    fs::write(folder.path().join("sidecars-are-named.yaml"), wrong).unwrap();
    let (status, stdout, stderr) =
        stress(&folder, &["./sidecars-are-named.yaml", "--kubelet", "v1.32", "--until-failure"]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("sidecars-are-named  failed"), "reported immediately\n{stdout}");
    assert!(stdout.contains("1 failed in"), "{stdout}");
}

#[test]
fn stops_at_the_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let (status, stdout, stderr) =
        stress(&folder, &["sidecars-are-named", "--kubelet", "v1.32", "--timeout", "90s", "--until-failure"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let times: usize = stdout.split("passed ×").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((4..=12).contains(&times), "a run takes 15 s of simulated time\n{stdout}");
}

#[test]
fn requires_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (status, _, stderr) = stress(&folder, &["sidecars-are-named"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("--repeat") && stderr.contains("--until-failure"), "{stderr}");
}
