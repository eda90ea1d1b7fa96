//! `evictlab parity`

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::squeezed;

/// Results of a real kubelet in the repository, the newest one.
const NEWEST: &str = "results/real/v1.36.3-cgroup-v1.json";
/// The page with the output for all of them.
const PAGE: &str = "harness/guides/reference/parity.md";

fn evictlab(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evictlab"))
        .current_dir(dir)
        .env_clear()
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

fn checkout() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The model agrees with a real kubelet on every case, and the page says so.
#[test]
fn model_agrees_with_the_newest_real_kubelet() {
    let output = evictlab(checkout(), &["parity", NEWEST]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{table}{}", text(&output.stderr));
    let row = squeezed(table.lines().find(|line| line.starts_with("| v1.")).unwrap());
    let page = squeezed(&fs::read_to_string(checkout().join(PAGE)).unwrap());
    assert!(
        page.contains(&row),
        "{PAGE} does not contain {row}: write the output of `evictlab parity` to it"
    );
}

/// Every file has a row on the page.
#[test]
fn page_lists_all_results() {
    let page = squeezed(&fs::read_to_string(checkout().join(PAGE)).unwrap());
    let real = fs::read_dir(checkout().join("results/real")).unwrap();
    let names: Vec<String> = real.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.is_empty());
    for name in names {
        let (kubelet, cgroup) = name.strip_suffix(".json").unwrap().split_once("-cgroup-").unwrap();
        assert!(page.contains(&format!("| {kubelet} | {cgroup} |")), "{name}");
    }
}

#[test]
fn differences_are_listed() {
    let dir = TempDir::new().unwrap();
    let message = "alloc, event+status+condition: The node was low on resource: memory.";
    let results = json!({"kubelet": "v1.36.2", "cgroup": "v2", "cases": {
        "message/nobody-offends": {"verdicts": {"failed": 2}},
        "message/sidecars-are-named": {"verdicts": {"passed": 1}, "messages": [message]},
        "message/ephemeral-container-is-never-named": {"verdicts": {"inconclusive": 1}},
    }});
    fs::write(dir.path().join("real.json"), results.to_string()).unwrap();
    let output = evictlab(dir.path(), &["parity", "real.json"]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{table}{}", text(&output.stderr));
    assert!(table.contains("- message/nobody-offends: real failed in 2 runs, model passed"), "{table}");
    assert!(table.contains("- message/sidecars-are-named: passed on both, other messages"), "{table}");
    assert!(table.contains(&format!("\n- {message}\n+ alloc, ")), "{table}");
    let json: Value =
        crate::documents::parse("parity", evictlab(dir.path(), &["parity", "real.json", "--json"]).stdout);
    let cases = json[0]["cases"].as_array().unwrap();
    let agreement = |case: &str| cases.iter().find(|one| one["case"] == case).unwrap()["agreement"].clone();
    assert_eq!(agreement("message/nobody-offends"), "other-verdict");
    assert_eq!(agreement("message/sidecars-are-named"), "other-messages");
    // Every case of the catalogue is listed.
    assert_eq!(agreement("ranking/cpu-pressure-evicts-nobody"), "pending");
}

#[test]
fn bad_input_is_reported() {
    let dir = TempDir::new().unwrap();
    let run = ["run", "nobody-offends", "--kubelet", "v1.36", "--output-dir", "run"];
    assert!(evictlab(dir.path(), &run).status.success());
    fs::write(dir.path().join("old.json"), r#"{"kubelet": "v1.20.0", "cgroup": "v1", "cases": {}}"#).unwrap();
    fs::write(dir.path().join("cgroup.json"), r#"{"kubelet": "v1.36.2", "cgroup": "v3", "cases": {}}"#)
        .unwrap();
    for (arguments, expected) in [
        (&["parity", "record", "run"][..], "its kubelets are modelled"),
        (&["parity", "record", "none"], "failed to read run none: "),
        (&["parity"], "failed to read results/real"),
        (&["parity", "old.json"], "v1.20.0"),
        (&["parity", "cgroup.json"], "unknown variant `v3`, expected `v1` or `v2`"),
    ] {
        let output = evictlab(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
    assert!(!dir.path().join("results/real").exists());
}
