//! Validation of workloads: `pkg/apis/apps/validation`, `pkg/apis/batch/validation`.

use serde_json::Value;

use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::{metadata, names, pod};
use crate::resource::{Kind, ObjectExt, label_selector};

/// Validates a workload: metadata, selector and pod template.
pub(in crate::apiserver) fn validate(kind: Kind, object: &Value) -> FieldErrors {
    let mut errors = metadata::validate(object, names::dns_subdomain);
    let (spec, path) = (&object["spec"], FieldPath::new("spec"));
    let template = path.child("template");
    let counts = [
        "replicas",
        "minReadySeconds",
        "parallelism",
        "completions",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ];
    errors.check_non_negative(spec, &counts, &path);
    validate_selector(spec, &path, &mut errors);
    pod::validate_template(&spec["template"], &template, &mut errors);
    let path = template.child("spec").child("restartPolicy");
    let policy = spec["template"]["spec"].text("restartPolicy");
    match kind {
        Kind::Job if policy == "Always" => {
            errors.required(&path, r#"valid values: "OnFailure", "Never""#);
        }
        Kind::Job => {}
        _ if policy != "Always" => errors.not_supported(&path, policy, &["Always"]),
        _ => {}
    }
    errors
}

fn validate_selector(spec: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    let (selector, selector_path) = (&spec["selector"], path.child("selector"));
    if !selector.is_object() {
        errors.required(&selector_path, "");
        return;
    }
    if is_empty(selector) {
        errors.invalid(&selector_path, selector.clone(), "empty selector is invalid for deployment");
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !label_selector::matches(selector, labels) {
        let path = path.child("template").child("metadata").child("labels");
        errors.invalid(&path, labels.clone(), "`selector` does not match template `labels`");
    }
}

/// Validates an update: the fields that identify the pods are immutable.
pub(super) fn validate_update(kind: Kind, object: &Value, old: &Value, errors: &mut FieldErrors) {
    let immutable: &[&str] = match kind {
        Kind::Job => {
            &["completions", "selector", "template", "completionMode", "podFailurePolicy", "managedBy"]
        }
        _ => &["selector"],
    };
    for field in immutable {
        let (new, old) = (&object["spec"][field], &old["spec"][field]);
        if new != old {
            errors.invalid(&FieldPath::new("spec").child(field), new.clone(), "field is immutable");
        }
    }
}

/// Returns true for a selector that matches everything.
fn is_empty(selector: &Value) -> bool {
    let is_empty = |field: &str| match &selector[field] {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    is_empty("matchLabels") && is_empty("matchExpressions")
}
