//! Validation of workloads: `pkg/apis/apps/validation`, `pkg/apis/batch/validation`.

use evictlab_rules::KubeletVersion;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::{metadata, names, pod};
use crate::resource::{Kind, ObjectExt, label_selector};

/// Validates a workload: metadata, selector and pod template.
pub(in crate::apiserver) fn validate(kind: Kind, object: &Value, version: &KubeletVersion) -> FieldErrors {
    let mut errors = metadata::validate(object, names::dns_subdomain);
    let (spec, path) = (object.spec(), FieldPath::new("spec"));
    let template_path = path.child("template");
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
    pod::validate_template(&spec["template"], version, &template_path, &mut errors);
    let path = template_path.child("spec").child("restartPolicy");
    let policy = spec["template"].spec().text("restartPolicy");
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
    let selector_path = path.child("selector");
    let Some(selector) = spec.read::<Option<LabelSelector>>("selector") else {
        errors.required(&selector_path, "");
        return;
    };
    let LabelSelector { match_labels, match_expressions } = &selector;
    if match_labels.iter().flatten().next().is_none() && match_expressions.iter().flatten().next().is_none() {
        errors.invalid(&selector_path, json!(selector), "empty selector is invalid for deployment");
        return;
    }
    let labels = spec["template"].labels();
    if !label_selector::matches(Some(&selector), labels) {
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
        let (new, old) = (&object.spec()[field], &old.spec()[field]);
        if new != old {
            errors.invalid(&FieldPath::new("spec").child(field), new.clone(), "field is immutable");
        }
    }
}
