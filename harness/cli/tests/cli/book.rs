//! `evictlab book`: the pages and their links.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::squeezed;

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn evictlab(arguments: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evictlab")).current_dir(dir).args(arguments).output().unwrap()
}

/// The command itself rejects broken links.
#[test]
fn documentation_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let written = evictlab(&["book", "book", "--checkout", PROJECT], dir.path());
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let read = |name: &str| fs::read_to_string(dir.path().join("book").join(name)).unwrap();
    let summary = read("SUMMARY.md");
    for page in [
        "reference/commands/cluster-create.md",
        "catalogue/message/sidecars-are-named.md",
        "install.md",
        "reference/documents/events.jsonl.md",
    ] {
        assert!(summary.contains(&format!("]({page})")), "{page} is not in the table of contents");
        assert!(read(page).starts_with("# "), "{page} has no title");
    }
    let case = squeezed(&read("catalogue/message/sidecars-are-named.md"));
    for part in [
        "| model | ",
        "reproduced",
        "kubernetes/kubernetes/issues/124938",
        "blob/master/pkg/kubelet/eviction/helpers.go",
    ] {
        assert!(case.contains(part), "{part} is not in {case}");
    }
    assert!(read("reference/commands/run.md").contains("--kubelet"));
    let events = squeezed(&read("reference/documents/events.jsonl.md"));
    for part in ["\n## `type`: `case-ended`\n", "\n| `result.checks[].holds` | boolean | yes | True if "] {
        assert!(events.contains(part), "{part} is not in {events}");
    }
}

#[test]
fn an_unknown_verdict_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("real.json"), r#"{"message/a": {"v1.32": "pased"}}"#).unwrap();
    let arguments = ["book", "book", "--checkout", PROJECT, "--verdicts", "real=real.json"];
    let written = evictlab(&arguments, dir.path());
    let error = String::from_utf8_lossy(&written.stderr);
    assert_eq!(written.status.code(), Some(2), "{error}");
    assert!(error.contains("failed to parse real.json:1:") && error.contains("`pased`"), "{error}");
}

#[test]
fn a_directory_that_is_not_a_checkout_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let written = evictlab(&["book", "book"], dir.path());
    assert_eq!(written.status.code(), Some(2));
    assert!(!dir.path().join("book").exists());
}
