//! Cases with a wrong expectation, on the embedded cluster: each fails, and the reason names the
//! expectation.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A case, the replaced text, its replacement, and a part of the reason.
const WRONG_EXPECTATIONS: [(&str, &str, &str, &str); 12] = [
    (
        "ranking/over-request-first",
        "evicted: [over]",
        "evicted: [within]",
        "evicted pods: expected evicted: within",
    ),
    (
        "ranking/priority-breaks-ties",
        "evicted: [low]",
        "evicted: [high]",
        "evicted pods: expected evicted: high",
    ),
    (
        "limits/hard-grace",
        "killed-within: 4s",
        "killed-within: 1ms",
        "stubborn is killed: expected within 1ms, observed",
    ),
    (
        "limits/emptydir-size",
        "limit: 20Mi}",
        "limit: 21Mi}",
        "limit of emptyDir: expected data 21Mi, observed data 20Mi",
    ),
    (
        "message/ephemeral-resources-are-refused",
        "Forbidden: cannot be set",
        "Forbidden: must not be set",
        "API rejection: expected 422 Invalid: Pod \"plain\" is invalid: spec.ephemeralContainers[0].resources: Forbidden: must not",
    ),
    (
        "message/sidecars-are-named",
        "      el-sidecar2: {request: \"0\"}\n",
        "",
        "container el-sidecar2: expected not in the message, observed usage",
    ),
    (
        "message/sidecars-are-named",
        "el1: {request: \"0\"}",
        "el1: {request: 1Mi}",
        "container el1: expected usage any, request 1Mi",
    ),
    (
        "limits/no-annotations-no-disruption-target",
        "annotations: absent",
        "annotations: present",
        "annotations of writer: expected present, observed absent",
    ),
    (
        "limits/no-annotations-no-disruption-target",
        "disruption-target: absent",
        "disruption-target: present",
        "DisruptionTarget of writer: expected present, observed absent",
    ),
    (
        "message/three-witnesses-agree",
        "disruption-target: present",
        "disruption-target: absent",
        "DisruptionTarget of alloc: expected absent, observed The node was low on resource: memory",
    ),
    ("out-of-memory/limit-oom-is-no-eviction", "is: 137", "is: 143", "exit code: expected 143, observed 137"),
    ("relatives/api-eviction-blocked-by-pdb", "is: 429", "is: 201", "expected 201, observed 429"),
];

#[test]
fn wrong_expectations_fail_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let suites = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases"));
    let mut unexpected = vec![];
    for (index, (case, right, wrong, expected_reason)) in WRONG_EXPECTATIONS.into_iter().enumerate() {
        let text = fs::read_to_string(suites.join(case).with_extension("yaml")).unwrap();
        assert!(text.contains(right), "{case} does not contain {right:?}");
        let name = case.split_once('/').unwrap().1;
        let file = folder.path().join(format!("{index}/{name}.yaml"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text.replacen(right, wrong, 1)).unwrap();
        let run_dir = folder.path().join(format!("results-{index}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.env_clear().env("PATH", "/nonexistent").current_dir(folder.path()).arg("run").arg(&file);
        let output = command.args(["--kubelet", "v1.32", "--output-dir"]).arg(&run_dir).output().unwrap();
        let events = fs::read_to_string(run_dir.join("artifacts/events.jsonl")).unwrap_or_default();
        let ended = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut results =
            ended.filter(|event| event["type"] == "case-ended").map(|event| event["result"].clone());
        let result = results.next().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let (verdict, why) = (&result["verdict"], result["why"].as_str().unwrap());
        if verdict != "failed" || output.status.code() != Some(1) || !why.contains(expected_reason) {
            unexpected.push(format!("{case}, {right:?} → {wrong:?}: {verdict}: {why}"));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}
