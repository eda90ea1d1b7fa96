//! `run --dry-run` and `stress --dry-run`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::documents;

fn evictlab(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(dir).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    let output = command.args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), text.concat())
}

const KUBELETS: [&str; 4] = ["--kubelet", "v1.28", "--kubelet", "v1.32"];

fn plan(dir: &Path, more: &[&str]) -> Value {
    let arguments = [&["run", "message", "--dry-run", "--json"], &KUBELETS[..], more].concat();
    let (status, text) = evictlab(dir, &arguments);
    assert_eq!(status, 0, "{text}");
    documents::parse("dry-run", &text)
}

/// The cases of a plan as `case kubelet`; skipped ones or the others.
fn cases(plan: &Value, skipped: bool) -> BTreeSet<String> {
    let all = plan["cases"].as_array().unwrap().iter().filter(|case| case["skipped"].is_string() == skipped);
    let text = |case: &Value, key: &str| case[key].as_str().unwrap().to_owned();
    all.map(|case| format!("{}/{} {}", text(case, "suite"), text(case, "case"), text(case, "kubelet")))
        .collect()
}

#[test]
fn a_plan_has_the_cases_that_a_run_executes_and_skips() {
    let dir = tempfile::tempdir().unwrap();
    let planned = plan(dir.path(), &["--nodes", "2"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "a plan writes nothing");
    assert_eq!((&planned["backend"], &planned["repeat"]), (&"embedded".into(), &1.into()));
    assert!(planned["estimatedSeconds"].is_null() && planned["earlierRuns"] == 0, "{planned}");
    let first = &planned["cases"][0];
    assert_eq!(first["nodes"], serde_json::json!(["v1-28-worker", "v1-28-worker2"]), "{first}");
    assert!(first["deadlineSeconds"].as_u64() >= Some(60) && first["exclusivity"] == "shared", "{first}");
    let order: Vec<&str> = planned["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["exclusivity"].as_str().unwrap())
        .collect();
    assert!(order.windows(2).all(|pair| pair[0] == pair[1] || pair[0] == "shared"), "{order:?}");

    let (status, text) = evictlab(dir.path(), &[&["run", "message", "-q"], &KUBELETS[..]].concat());
    assert_eq!(status, 0, "{text}");
    let events = fs::read_to_string(dir.path().join("results/latest/artifacts/events.jsonl")).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended = |skipped: bool| -> BTreeSet<String> {
        let all = events.iter().filter(|event| event["type"] == "case-ended");
        let all = all.filter(|event| (event["result"]["verdict"] == "skipped") == skipped);
        let name = |event: &Value| {
            let [suite, case, kubelet] =
                ["suite", "case", "kubelet"].map(|key| event[key].as_str().unwrap().to_owned());
            format!("{suite}/{case} {kubelet}")
        };
        all.map(name).collect()
    };
    assert_eq!((cases(&planned, false), cases(&planned, true)), (ended(false), ended(true)));

    let again = plan(dir.path(), &["--repeat", "3"]);
    assert!(again["estimatedSeconds"].as_f64() > Some(0.0) && again["earlierRuns"] == 1, "{again}");
    assert!(again["cases"][0]["earlierSeconds"].as_f64() > Some(0.0), "{again}");
}

#[test]
fn a_plan_in_text_has_reasons_and_an_estimate() {
    let dir = tempfile::tempdir().unwrap();
    let (status, text) =
        evictlab(dir.path(), &["run", "message", "limits", "--kubelet", "v1.28", "--dry-run"]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("CLUSTER") && text.contains("v1-28-worker"), "{text}");
    let skipped = text.split_once("skipped: requires kubelets >=1.29\n").map_or("", |(_, rest)| rest);
    let group = skipped.split("\n\n").next().unwrap_or_default();
    assert!(group.contains("  limits/sidecar-own on v1.28.15\n"), "{text}");
    assert!(text.contains("on 1 kubelet, ") && text.contains("real time unknown: no earlier run"), "{text}");
    let (status, text) = evictlab(dir.path(), &["stress", "requests-decide", "--repeat", "7", "--dry-run"]);
    assert!(status == 0 && text.contains("1 execution, 7 times each on 1 kubelet, 0 skipped"), "{text}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Each row has arguments, a text, and how often the output contains it.
#[test]
fn a_plan_has_each_kubelet_once_and_notes_unusual_arguments() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("empty.json"), "{}").unwrap();
    let case = "message/requests-decide";
    let unknown_patch = "note: v1.31.99 is newer than v1.31.14, the newest release that evictlab knows: it is modelled as v1.31";
    let rows: [(&[&str], &str, usize); 5] = [
        (&["--kubelet", "v1.31", "--kubelet", "v1.31.14"], case, 1),
        (&["--kubelet", "v1.31", "--kubelet", "v1.31"], case, 2),
        (&["--kubelet", "v1.31.99"], unknown_patch, 1),
        (&["--kubelet", "v1.31.14"], unknown_patch, 0),
        (
            &["--baseline=empty.json"],
            "warning: the baseline, with 0 cases, has no verdict of the selected",
            1,
        ),
    ];
    for (arguments, line, count) in rows {
        let (status, text) =
            evictlab(dir.path(), &[&["run", "requests-decide", "--dry-run"], arguments].concat());
        assert_eq!(status, 0, "{arguments:?}: {text}");
        assert_eq!(text.matches(line).count(), count, "{arguments:?}: {text}");
    }
}
