//! Jobs: `pkg/apis/batch/v1/defaults.go`, `pkg/apis/batch/validation`, `pkg/registry/batch/job`.

use serde_json::{Value, json};

use super::super::field::{Errors, Path};
use super::super::share::not_negative;
use super::super::{Status, meta, pod, selector};
use super::{default, failure_policy};
use crate::world::Ctx;

/// The labels of a job's pods that name it, an old and a new one each.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Fills one in.
pub(super) fn fill(job: &mut Value) {
    let spec = &mut job["spec"];
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = json!(1);
    }
    let limit = if spec["backoffLimitPerIndex"].is_null() { 6 } else { i32::MAX };
    let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
    for (field, value) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(limit)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
        ("manualSelector", json!(false)),
    ] {
        default(spec, field, value);
    }
    failure_policy::fill(spec);
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    if labels.is_object() && job["metadata"]["labels"].is_null() {
        job["metadata"]["labels"] = labels.clone();
    }
}

/// Refuses an indexed job, of which the controller here knows nothing.
pub(super) fn check_mode(job: &Value) -> Result<(), Status> {
    if job["spec"]["completionMode"] != "Indexed" {
        return Ok(());
    }
    Err(Status {
        code: 501,
        reason: "NotImplemented",
        message: "an Indexed job is not run by the embedded cluster: leave completionMode out".to_owned(),
        details: None,
    })
}

/// Gives a new job its uid, and the selector and labels by which it knows its pods (`generateSelector`).
pub(super) fn select(ctx: &mut Ctx, name: &str, job: &mut Value) {
    let uid = ctx.store.uid();
    job["metadata"]["uid"] = json!(uid);
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for (keys, value) in [(NAME_LABELS, name), (UID_LABELS, &uid)] {
        keys.into_iter().for_each(|key| default(labels, key, json!(value)));
    }
    default(&mut job["spec"]["selector"]["matchLabels"], UID_LABELS[1], json!(uid));
}

/// Checks one.
pub(super) fn validate(job: &Value) -> Errors {
    let mut errors = super::metadata(job);
    let (spec, path) = (&job["spec"], Path::new("spec"));
    if spec["manualSelector"] != true && spec["selector"].is_object() {
        generated(job, &mut errors);
    }
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        not_negative(spec[field].as_i64(), &path.child(field), &mut errors);
    }
    match spec["completionMode"].as_str().unwrap_or_default() {
        "NonIndexed" => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
                if !spec[field].is_null() {
                    let why = "requires indexed completion mode";
                    errors.invalid(&path.child(field), spec[field].clone(), why);
                }
            }
        }
        mode => errors.not_supported(&path.child("completionMode"), mode, &["NonIndexed", "Indexed"]),
    }
    failure_policy::validate(spec, &path.child("podFailurePolicy"), &mut errors);
    replacement(spec, &path.child("podReplacementPolicy"), &mut errors);
    let place = path.child("template");
    pod::validation::template(&spec["template"], &place, &mut errors);
    let place = place.child("spec").child("restartPolicy");
    match spec["template"]["spec"]["restartPolicy"].as_str().unwrap_or_default() {
        "Always" | "" => errors.required(&place, r#"valid values: "OnFailure", "Never""#),
        policy @ "OnFailure" if spec["podFailurePolicy"].is_object() => {
            let why = r#"only "Never" is supported when podFailurePolicy is specified"#;
            errors.invalid(&place, policy, why);
        }
        // Any other is no policy at all, which is told already.
        _ => {}
    }
    if spec["selector"].is_object() {
        super::selected(job, &path.child("template"), &mut errors);
    } else {
        errors.required(&path.child("selector"), "");
    }
    errors
}

/// Checks a change (`ValidateJobSpecUpdate`).
pub(super) fn check_change(job: &Value, old: &Value, errors: &mut Errors) {
    for field in ["completions", "selector", "template", "completionMode", "podFailurePolicy", "managedBy"] {
        super::immutable(job, old, field, errors);
    }
}

/// Sees that nobody wrote other labels where they are generated.
fn generated(job: &Value, errors: &mut Errors) {
    let path = Path::new("spec");
    let (name, uid) = (meta::text(job, "name"), meta::text(job, "uid"));
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    let mut expected = json!({});
    for (keys, value) in [(UID_LABELS, uid), (NAME_LABELS, name)] {
        for key in keys {
            expected[key] = json!(value);
            if labels[key] != value {
                let place = path.child("template").child("metadata").child("labels").key(key);
                let why = format!("must be '{value}'");
                errors.invalid(&place, labels[key].clone(), &why);
            }
        }
    }
    if !selector::matches(&job["spec"]["selector"], &expected) {
        let why = "`selector` not auto-generated";
        errors.invalid(&path.child("selector"), job["spec"]["selector"].clone(), why);
    }
}

fn replacement(spec: &Value, path: &Path, errors: &mut Errors) {
    let supported: &[&str] = match spec["podFailurePolicy"].is_object() {
        true => &["Failed"],
        false => &["Failed", "TerminatingOrFailed"],
    };
    if let Some(policy) = spec["podReplacementPolicy"].as_str().filter(|policy| !supported.contains(policy)) {
        errors.not_supported(path, policy, supported);
    }
}
