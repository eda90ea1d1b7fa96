//! The page of a run.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

fn evictlab(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

#[test]
fn a_run_becomes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = evictlab(
        &folder,
        &["run", "message", "--kubelet", "v1.31", "--kubelet", "v1.32", "--focus", "sidecars-are-named"],
    );
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let made = evictlab(&folder, &["report"]);
    assert_eq!(
        (made.status.code(), text(&made.stdout)),
        (Some(0), "results/latest/report.html\n".to_owned())
    );
    let page = fs::read_to_string(folder.path().join("results/latest/report.html")).unwrap();
    // Both kubelets, each with its picture, its pods and its log.
    assert_eq!(page.matches("<article ").count(), 2);
    assert_eq!(page.matches("<svg ").count(), 2);
    for part in ["memory.available", "evicted", "starved_resource", "a model", "Pods as they were created"] {
        assert!(page.contains(part), "{part}");
    }
    let printed = evictlab(&folder, &["report", "results/latest", "--output", "-"]);
    assert_eq!(text(&printed.stdout).trim_end(), page.trim_end());
}

#[test]
fn a_run_of_an_older_evictlab_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results/sample");
    let made = evictlab(&folder, &["report", sample, "--output", "page.html"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!((page.matches("<svg ").count(), page.matches("backend").count() > 0), (2, true));
}

#[test]
fn two_runs_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    for (kubelet, dir) in [("v1.31", "old"), ("v1.31", "same")] {
        let run = evictlab(
            &folder,
            &["run", "message", "--focus", "nobody-offends", "--kubelet", kubelet, "--output-dir", dir],
        );
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    }
    let compared = evictlab(&folder, &["report", "--compare", "old", "same"]);
    let told = text(&compared.stdout);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    assert!(told.contains("0 changed, 1 as before.") && told.contains("1 passed"), "{told}");
    let refused = evictlab(&folder, &["report", "--compare", "old", "nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("nowhere holds no run"), "{}", text(&refused.stderr));
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (dir, why) in [("empty", "empty holds no run"), ("nowhere", "nowhere holds no run")] {
        let refused = evictlab(&folder, &["report", dir]);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(said.contains(why) && said.contains("results/latest"), "{said}");
    }
    let run = evictlab(&folder, &["run", "message", "--focus", "nobody-offends", "--output-dir", "run"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let refused = evictlab(&folder, &["report", "run", "--output", "no/such/page.html"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(&refused.stderr).contains("cannot write no/such/page.html"), "{}", text(&refused.stderr));
}
