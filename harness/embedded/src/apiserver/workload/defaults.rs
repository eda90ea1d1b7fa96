//! Defaults of workloads: `pkg/apis/apps/v1/defaults.go`, `pkg/apis/batch/v1/defaults.go`.

use serde_json::{Value, json};

use crate::apiserver::pod;
use crate::resource::{Kind, ObjectExt};

/// Sets the defaults of a workload and of its pod template.
pub(super) fn set_defaults(kind: Kind, object: &mut Value) {
    pod::set_template_defaults(&mut object["spec"]["template"]);
    match kind {
        Kind::Job => set_job_defaults(object),
        Kind::ReplicaSet => object["spec"].set_default("replicas", json!(1)),
        _ => set_deployment_defaults(&mut object["spec"]),
    }
}

fn set_deployment_defaults(spec: &mut Value) {
    spec.set_default("replicas", json!(1));
    spec.set_default("strategy", json!({}));
    let strategy = &mut spec["strategy"];
    strategy.set_default("type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        strategy.set_default("rollingUpdate", json!({}));
        for field in ["maxUnavailable", "maxSurge"] {
            strategy["rollingUpdate"].set_default(field, json!("25%"));
        }
    }
    spec.set_default("revisionHistoryLimit", json!(10));
    spec.set_default("progressDeadlineSeconds", json!(600));
}

fn set_job_defaults(job: &mut Value) {
    let spec = &mut job["spec"];
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = json!(1);
    }
    let backoff_limit = if spec["backoffLimitPerIndex"].is_null() { 6 } else { i32::MAX };
    let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
    for (field, default) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(backoff_limit)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
        ("manualSelector", json!(false)),
    ] {
        spec.set_default(field, default);
    }
    let rules = spec.pointer_mut("/podFailurePolicy/rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let patterns = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        for pattern in patterns.into_iter().flatten() {
            pattern.set_default("status", json!("True"));
        }
    }
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    if labels.is_object() && job["metadata"]["labels"].is_null() {
        job["metadata"]["labels"] = labels.clone();
    }
}
