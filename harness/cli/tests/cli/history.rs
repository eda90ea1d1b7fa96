//! `evictlab history`

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{documents, squeezed};

fn evictlab(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_clear().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

/// Runs a case on a sound kubelet, then on one that does not name sidecars.
fn nightly_runs(folder: &TempDir) {
    let defect = ["--defect", "message-omits-sidecars"];
    for (name, arguments) in [("1", &[][..]), ("2", &[]), ("3", &defect)] {
        let dir = format!("nightly/{name}");
        let mut all =
            vec!["run", "sidecars-are-named", "nobody-offends", "--kubelet", "v1.36", "--output-dir", &dir];
        all.extend(arguments);
        let run = evictlab(folder, &all);
        let expected = if arguments.is_empty() { 0 } else { 1 };
        assert_eq!(run.status.code(), Some(expected), "{}{}", text(&run.stdout), text(&run.stderr));
    }
}

#[test]
fn shows_newly_failing_cases() {
    let folder = tempfile::tempdir().unwrap();
    nightly_runs(&folder);
    let table = evictlab(&folder, &["history", "nightly"]);
    let table = text(&table.stdout);
    assert!(squeezed(&table).contains("| message/sidecars-are-named | v1.36 | 67 % | `..F` |"), "{table}");
    assert!(
        table.contains("newly failing, 1 time") && !table.contains("| message/nobody-offends"),
        "{table}"
    );
    assert!(table.contains("1 other did not change or fail."), "{table}");
    assert!(table.ends_with("\nAs a page: `evictlab history nightly --output history.html`\n"), "{table}");
    assert_eq!(evictlab(&folder, &["history", "nightly", "--exit-code"]).status.code(), Some(1));
    let good = ["history", "nightly/1", "nightly/2", "--exit-code"];
    assert_eq!(evictlab(&folder, &good).status.code(), Some(0));
    let json = evictlab(&folder, &["history", "nightly", "--json"]);
    let json = documents::parse("history", &json.stdout);
    let changes: Vec<&serde_json::Value> =
        json["series"].as_array().unwrap().iter().map(|series| &series["change"]).collect();
    assert_eq!(*changes[1], serde_json::json!({"kind": "newly-failing", "value": 1}), "{json}");
    let page = evictlab(&folder, &["history", "nightly", "-o", "history.html"]);
    assert_eq!(text(&page.stdout), "history.html\n");
    let page = fs::read_to_string(folder.path().join("history.html")).unwrap();
    let report = evictlab(&folder, &["report", "--history", "nightly", "-o", "report.html"]);
    assert_eq!(text(&report.stdout), "report.html\n");
    assert_eq!(fs::read_to_string(folder.path().join("report.html")).unwrap(), page);
    assert_eq!(page.matches("<span class=\"failed\"").count(), 1, "{page}");

    // A directory for each night, with one for each artifact.
    fs::create_dir(folder.path().join("nights")).unwrap();
    fs::rename(folder.path().join("nightly"), folder.path().join("nights/nightly")).unwrap();
    let nested = evictlab(&folder, &["history", "nights", "--json"]);
    assert_eq!(documents::parse("history", &nested.stdout), json);
}

#[test]
fn rejects_directories_without_runs() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (dir, why) in [("empty", "failed to find runs in empty"), ("nowhere", "failed to list nowhere")] {
        let refused = evictlab(&folder, &["history", dir]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    }
}
