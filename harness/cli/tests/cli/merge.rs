//! `evictlab report merge`

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const SELECTION: [&str; 6] = ["run", "message", "--kubelet", "v1.31", "--kubelet", "v1.36"];

fn evictlab(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(dir).env_remove("EVICTLAB_CASES").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

/// The verdict of each attempt, by case, kubelet and attempt.
fn verdicts(run: &Path) -> BTreeMap<String, String> {
    let events = fs::read_to_string(run.join("artifacts/events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended = events.filter(|event| event["type"] == "case-ended");
    let entry = |event: Value| {
        let id = ["suite", "case", "kubelet", "attempt"].map(|key| event[key].to_string()).join(" ");
        (id, event["result"]["verdict"].as_str().unwrap().to_owned())
    };
    ended.map(entry).collect()
}

/// Runs the shards `parts` of `of`, into directories that are named after them.
fn run_shards(dir: &Path, parts: &[usize], of: usize, seed: &str) -> Vec<String> {
    let run = |part: &usize| {
        let (shard, name) = (format!("{part}/{of}"), format!("shard-{part}"));
        let options = ["--seed", seed, "--shard", &shard, "--output-dir", &name];
        let output = evictlab(dir, &[&SELECTION[..], &options].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        name
    };
    parts.iter().map(run).collect()
}

fn merge(dir: &Path, shards: &[String], options: &[&str]) -> Output {
    let shards: Vec<&str> = shards.iter().map(String::as_str).collect();
    evictlab(dir, &[&["report", "merge", "--output-dir", "merged"], &shards[..], options].concat())
}

#[test]
fn shards_merge_to_the_whole_run() {
    for (of, seed) in [(2, "0"), (5, "7")] {
        let dir = tempfile::tempdir().unwrap();
        let options = ["--seed", seed, "--output-dir", "whole"];
        let whole = evictlab(dir.path(), &[&SELECTION[..], &options].concat());
        let shards = run_shards(dir.path(), &(1..=of).collect::<Vec<_>>(), of, seed);
        let merged = merge(dir.path(), &shards, &[]);
        assert_eq!((merged.status.code(), text(&merged.stderr)), (whole.status.code(), String::new()));
        let [seen, expected] = ["merged", "whole"].map(|name| verdicts(&dir.path().join(name)));
        assert!(expected.len() > 25);
        assert_eq!(seen, expected, "{of} shards");
        // Each case has its evidence.
        let files = |name: &str| {
            let found = Command::new("find").current_dir(dir.path().join(name)).output().unwrap();
            let mut files: Vec<String> = text(&found.stdout).lines().map(str::to_owned).collect();
            files.sort();
            files
        };
        assert_eq!(files("merged"), files("whole"));
        let page = evictlab(dir.path(), &["report", "merged", "-o", "page.html"]);
        assert_eq!(page.status.code(), Some(0), "{}", text(&page.stderr));
    }
}

#[test]
fn a_missing_shard_and_a_killed_one_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let mut shards = run_shards(dir.path(), &[1, 2], 3, "0");
    let missing = merge(dir.path(), &shards, &["--quiet"]);
    assert_eq!(missing.status.code(), Some(4), "{}", text(&missing.stdout));
    assert_eq!(text(&missing.stderr), "note: Of the selection, shard 3/3 is missing.\n");
    let lost =
        |name: &str| verdicts(&dir.path().join(name)).values().filter(|verdict| *verdict == "error").count();
    let of_missing = lost("merged");
    assert!(of_missing > 5, "{of_missing}");

    // The third was killed after half of its events.
    shards.extend(run_shards(dir.path(), &[3], 3, "0"));
    let events = dir.path().join("shard-3/artifacts/events.jsonl");
    let all = fs::read(&events).unwrap();
    fs::write(&events, &all[..all.len() / 2]).unwrap();
    fs::rename(dir.path().join("merged"), dir.path().join("first")).unwrap();
    let killed = merge(dir.path(), &shards, &["--quiet"]);
    assert_eq!(killed.status.code(), Some(4), "{}", text(&killed.stdout));
    assert!(
        text(&killed.stderr).starts_with("note: The run in shard-3 has no end"),
        "{}",
        text(&killed.stderr)
    );
    let of_killed = lost("merged");
    assert!(0 < of_killed && of_killed < of_missing, "{of_killed}");
}

#[test]
fn a_baseline_applies_to_the_merged_run() {
    let dir = tempfile::tempdir().unwrap();
    let shards = run_shards(dir.path(), &[1, 2], 2, "0");
    let same = merge(dir.path(), &shards, &["--baseline", "--write-baseline=baseline.json"]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));
    assert!(text(&same.stdout).contains("0 changed"), "{}", text(&same.stdout));
    let mut baseline: Value =
        serde_json::from_slice(&fs::read(dir.path().join("baseline.json")).unwrap()).unwrap();
    baseline["message/sidecars-are-named"]["v1.31"] = "failed".into();
    fs::write(dir.path().join("baseline.json"), baseline.to_string()).unwrap();
    fs::rename(dir.path().join("merged"), dir.path().join("first")).unwrap();
    let changed = merge(dir.path(), &shards, &["--baseline=baseline.json"]);
    assert_eq!(changed.status.code(), Some(5), "{}", text(&changed.stdout));
    assert!(text(&changed.stdout).contains("1 changed"), "{}", text(&changed.stdout));
}

#[test]
fn refuses_what_cannot_be_merged() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    let run = ["run", "sidecars-are-named", "--output-dir"];
    evictlab(dir.path(), &[&run[..], &["one"]].concat());
    evictlab(dir.path(), &[&run[..], &["other", "--seed", "3"]].concat());
    for (dirs, code, error) in [
        (&["one", "empty"][..], 2, "failed to read run empty: "),
        (&["one", "other"], 2, "failed to merge runs of a different model: one: cgroup v2, seed 0; other: "),
        (&["one", "one"], 0, "note: one is the same run as one and counts once."),
    ] {
        let dirs: Vec<String> = dirs.iter().map(|dir| (*dir).to_owned()).collect();
        let output = merge(dir.path(), &dirs, &[]);
        assert_eq!(output.status.code(), Some(code), "{dirs:?}");
        assert!(text(&output.stderr).contains(error), "{}", text(&output.stderr));
    }
    let unwritable = evictlab(dir.path(), &["report", "merge", "one", "--write-baseline=nowhere/b.json"]);
    assert_eq!(unwritable.status.code(), Some(2));
    assert!(text(&unwritable.stderr).contains("failed to write a baseline to nowhere"));
    assert!(!dir.path().join("results").exists());
}
