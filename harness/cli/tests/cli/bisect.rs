//! `evictlab bisect`

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

use crate::{documents, squeezed};

/// Exit status, standard output, standard error.
fn bisect(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    let output = command.arg("bisect").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const CASE: [&str; 3] = ["sidecars-are-named", "--backend", "embedded"];

#[test]
fn finds_the_first_good_kubelet_with_one_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let ends = ["--bad", "v1.31", "--good", "v1.36", "--kubelet", "v1.31,v1.32", "--kubelet", "v1.36"];
    let (status, stdout, stderr) = bisect(&folder, &[&CASE[..], &ends].concat());
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let report = fs::read_to_string(folder.path().join("results/latest/bisect.md")).unwrap();
    let table = "| v1.31.14 | bad: reproduced | cluster 1 |\n| v1.32.13 | good: passed | cluster 1 |\n| v1.36.4 | given as good | not tested |\n";
    assert!(squeezed(&report).contains(table), "{report}");
    let sentence = "**v1.32.13** is the first kubelet on which message/sidecars-are-named is good; it is bad on v1.31.14.";
    assert!(report.contains(sentence) && stdout.contains(sentence), "{report}");
    for hint in ["Run directory: ", "On real kubelets: "] {
        assert!(!stdout.contains(hint), "a cluster is a part of the search: {stdout}");
    }
    assert!(folder.path().join("results/latest/artifacts/cluster-1/artifacts/events.jsonl").is_file());
}

#[test]
fn reports_an_end_with_another_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (status, stdout, _) = bisect(&folder, &[&CASE[..], &["--bad", "v1.32", "--good", "v1.33"]].concat());
    assert_eq!(status, Some(1), "{stdout}");
    assert!(stdout.contains("v1.32.13 was given as bad and is good"), "{stdout}");
    let folder = tempfile::tempdir().unwrap();
    let ends = ["--bad", "v1.31", "--good", "v1.32", "-k", "v1.31,v1.32", "--json"];
    let (status, stdout, _) = bisect(&folder, &[&CASE[..], &ends].concat());
    let json = documents::parse("bisect", &stdout);
    let found = (&json["outcome"], &json["kubelets"]);
    let expected = (&"found".into(), &serde_json::json!(["v1.31.14", "v1.32.13"]));
    assert_eq!((status, found), (Some(0), expected), "{stdout}");
}

#[test]
fn rejects_invalid_kubelets_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, stdout: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\necho {stdout}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("one", "Kubernetes v1.33.0-alpha.1+5");
    program("other", "Kubernetes v1.33.0-alpha.1+6");
    program("strange", "hello");
    let real = ["sidecars-are-named", "--good"];
    let rows: [(&[&str], &str, bool); 5] = [
        (
            &["sidecars-are-named", "--good", "./one", "--bad", "./other", "--backend", "kind"],
            "failed to order ./one and ./other",
            true,
        ),
        (
            &[real[0], real[1], "./strange", "--bad", "./one", "--backend", "kind"],
            "failed to read the version of ./strange",
            true,
        ),
        (
            &[real[0], real[1], "v1.32", "--bad", "v1.32", "--backend", "embedded"],
            "failed to search: --good and --bad are both v1.32.13",
            false,
        ),
        (
            &["message", "--good", "v1.33", "--bad", "v1.31", "--backend", "embedded"],
            "a search needs one",
            false,
        ),
        (
            &[real[0], real[1], "v1.33", "--bad", "v1.31", "--backend", "existing"],
            "possible values: embedded, kind",
            false,
        ),
    ];
    for (arguments, why, needs_kind) in rows {
        let (status, stdout, stderr) = bisect(&folder, arguments);
        if needs_kind && status == Some(4) {
            eprintln!("skipped, no Docker or kind: {why}");
            continue;
        }
        assert_eq!(status, Some(2), "{stdout}{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        assert!(!folder.path().join("results").exists());
    }
}
