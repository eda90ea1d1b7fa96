//! A case again and again.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use tempfile::TempDir;

const CASE: &str = include_str!("../../../cases/message/sidecars-are-named.yaml");

/// Exit status, standard output, standard error.
fn stress(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    let output = command.args(["stress", "--backend", "embedded"]).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// What of a run's kubelet left evidence.
fn evidence(folder: &TempDir, case: &str) -> BTreeSet<String> {
    let dir = folder.path().join("results/latest/artifacts").join(case);
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn runs_are_counted_and_spread_over_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["sidecars-are-named", "--kubelet", "v1.31", "--kubelet", "v1.32", "--nodes", "2", "--runs", "12"];
    let (status, said, errors) = stress(&folder, &arguments);
    assert_eq!(status, Some(0), "{said}{errors}");
    assert!(said.contains("| message/sidecars-are-named | reproduced ×12 | passed ×12 |"), "{said}");
    assert!(said.contains("on v1.32.13: failed: 0 of 12 (95 % interval 0 to 24 %)"), "{said}");
    // Of each kubelet that run's which ended first.
    let kept = evidence(&folder, "message/sidecars-are-named");
    let kubelets: Vec<&str> = kept.iter().map(|name| name.split('-').next().unwrap()).collect();
    assert_eq!(kubelets, ["v1.31.14", "v1.32.13"]);
    let events = fs::read_to_string(folder.path().join("results/latest/artifacts/events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started =
        events.iter().filter(|event| event["what"] == "case-started" && event["kubelet"] == "v1.32.13");
    let runs: Vec<(&str, u64)> =
        started.map(|event| (event["node"].as_str().unwrap(), event["attempt"].as_u64().unwrap())).collect();
    assert_eq!(runs.iter().map(|run| run.1).collect::<BTreeSet<_>>(), (1..=12).collect());
    for node in ["v1-32-worker", "v1-32-worker2"] {
        assert!(runs.iter().filter(|run| run.0 == node).count() >= 4, "{runs:?}");
    }
}

#[test]
fn the_first_failure_ends_it_and_its_evidence_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    // What no kubelet says.
    let wrong =
        CASE.split("known-bugs:").next().unwrap().replace("el1: {request: \"0\"}", "el1: {request: \"5\"}");
    assert_ne!(wrong, CASE);
    fs::write(folder.path().join("sidecars-are-named.yaml"), wrong).unwrap();
    let (status, said, errors) =
        stress(&folder, &["./sidecars-are-named.yaml", "--kubelet", "v1.32", "--until-failure"]);
    assert_eq!(status, Some(1), "{said}{errors}");
    assert!(said.contains("sidecars-are-named  failed"), "told as it comes\n{said}");
    assert!(said.contains("1 failed in"), "{said}");
}

#[test]
fn a_time_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let (status, said, errors) =
        stress(&folder, &["sidecars-are-named", "--kubelet", "v1.32", "--for", "90s", "--until-failure"]);
    assert_eq!(status, Some(0), "{said}{errors}");
    let times: usize = said.split("passed ×").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((4..=12).contains(&times), "a run of the model takes 15 s of its time\n{said}");
}

#[test]
fn stress_without_a_limit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (status, _, errors) = stress(&folder, &["sidecars-are-named"]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("--runs") && errors.contains("--until-failure"), "{errors}");
}
