//! The first kubelet whose verdict differs.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

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
fn the_first_kubelet_that_is_good_is_found_with_one_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let ends = ["--bad", "v1.31", "--good", "v1.36", "--kubelets", "v1.31,v1.32,v1.36"];
    let (status, said, errors) = bisect(&folder, &[&CASE[..], &ends].concat());
    assert_eq!(status, Some(0), "{said}{errors}");
    let told = fs::read_to_string(folder.path().join("results/latest/bisect.md")).unwrap();
    let table = "| v1.31.14 | bad: reproduced | cluster 1 |\n| v1.32.13 | good: passed | cluster 1 |\n| v1.36.4 | said to be good | not tried |\n";
    assert!(told.contains(table), "{told}");
    let sentence = "**v1.32.13** is the first kubelet on which message/sidecars-are-named is good; it is bad on v1.31.14.";
    assert!(told.contains(sentence) && said.contains(sentence), "{told}");
    assert!(folder.path().join("results/latest/artifacts/cluster-1/artifacts/events.jsonl").is_file());
}

#[test]
fn an_end_that_is_not_as_said_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (status, said, _) = bisect(&folder, &[&CASE[..], &["--bad", "v1.32", "--good", "v1.33"]].concat());
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("v1.32.13 was said to be bad and is good"), "{said}");
}

#[test]
fn kubelets_that_cannot_be_ordered_or_known_are_told_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, said: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\necho {said}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("one", "Kubernetes v1.33.0-alpha.1+5");
    program("other", "Kubernetes v1.33.0-alpha.1+6");
    program("strange", "hello");
    let real = ["sidecars-are-named", "--good"];
    let rows: [(&[&str], &str, bool); 5] = [
        (
            &["sidecars-are-named", "--good", "./one", "--bad", "./other"],
            "./one and ./other cannot be ordered",
            true,
        ),
        (&[real[0], real[1], "./strange", "--bad", "./one"], "./strange is no kubelet", true),
        (
            &[real[0], real[1], "v1.32", "--bad", "v1.32", "--backend", "embedded"],
            "--good and --bad are both v1.32.13",
            false,
        ),
        (
            &["message", "--good", "v1.33", "--bad", "v1.31", "--backend", "embedded"],
            "a search needs one",
            false,
        ),
        (
            &[real[0], real[1], "v1.33", "--bad", "v1.31", "--backend", "existing"],
            "take --backend kind",
            false,
        ),
    ];
    for (arguments, why, needs_kind) in rows {
        let (status, said, errors) = bisect(&folder, arguments);
        if needs_kind && status == Some(4) {
            eprintln!("not run, for Docker or kind is not here: {why}");
            continue;
        }
        assert_eq!(status, Some(2), "{said}{errors}");
        assert!(errors.contains(why), "{errors}");
        assert!(!folder.path().join("results").exists());
    }
}
