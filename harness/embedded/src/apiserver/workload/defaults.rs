//! Defaults of workloads: `pkg/apis/apps/v1/defaults.go`, `pkg/apis/batch/v1/defaults.go`.

use k8s_openapi::api::apps::v1::DeploymentStrategy;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use crate::apiserver::pod;
use crate::resource::{Kind, ObjectExt};

/// Sets the defaults of a workload and of its pod template.
pub(super) fn set_defaults(kind: Kind, object: &mut Value) {
    pod::set_template_defaults(&mut object.spec_mut()["template"]);
    match kind {
        Kind::Job => set_job_defaults(object),
        Kind::ReplicaSet => object.spec_mut().set_default("replicas", json!(1)),
        _ => set_deployment_defaults(object.spec_mut()),
    }
}

fn set_deployment_defaults(spec: &mut Value) {
    for (field, default) in [
        ("replicas", json!(1)),
        ("strategy", json!({"type": "RollingUpdate"})),
        ("revisionHistoryLimit", json!(10)),
        ("progressDeadlineSeconds", json!(600)),
    ] {
        spec.set_default(field, default);
    }
    spec.change("strategy", |strategy: &mut DeploymentStrategy| {
        let kind = strategy.type_.get_or_insert_with(|| "RollingUpdate".to_owned());
        if kind == "RollingUpdate" {
            let quarter = || IntOrString::String("25%".to_owned());
            let update = strategy.rolling_update.get_or_insert_default();
            update.max_unavailable.get_or_insert_with(quarter);
            update.max_surge.get_or_insert_with(quarter);
        }
    });
}

fn set_job_defaults(job: &mut Value) {
    let spec = job.spec_mut();
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        spec.write("completions", 1);
    }
    let backoff_limit = if spec.get("backoffLimitPerIndex").is_none() { 6 } else { i32::MAX };
    let replacement = if spec.get("podFailurePolicy").is_none() { "TerminatingOrFailed" } else { "Failed" };
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
        for pattern in rule.items_mut("onPodConditions") {
            pattern.set_default("status", json!("True"));
        }
    }
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|_| job.labels().is_null()) {
        job.metadata_mut().write("labels", labels);
    }
}
