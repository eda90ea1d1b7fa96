//! What may change in a pod that exists.

use serde_json::Value;
use similar::TextDiff;

use super::super::field::{Errors, Path};
use super::{containers, defaults, validation};
use crate::world::Ctx;

const MAY_CHANGE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Fills a changed pod in, and checks the change by a user.
pub(in super::super) fn prepare(ctx: &Ctx, new: &mut Value, old: &Value) -> Errors {
    defaults::set(new, &super::super::control_plane(ctx));
    // Admission keeps what it had set.
    for field in ["priority", "preemptionPolicy"] {
        if new["spec"][field].is_null() && !old["spec"][field].is_null() {
            new["spec"][field] = old["spec"][field].clone();
        }
    }
    // The old name of the same field goes with it.
    if let Some(account) = new["spec"]["serviceAccountName"].as_str().map(str::to_owned) {
        new["spec"]["serviceAccount"] = account.into();
    }
    check(new, old)
}

/// Checks a change by a user.
fn check(new: &Value, old: &Value) -> Errors {
    let mut errors = validation::whole(new);
    let spec = Path::new("spec");
    for list in ["containers", "initContainers"] {
        if containers(new, list).count() != containers(old, list).count() {
            errors.forbidden(&spec.child(list), "pod updates may not add or remove containers");
            return errors;
        }
    }
    let deadline = |pod: &Value| pod["spec"]["activeDeadlineSeconds"].as_i64();
    let path = spec.child("activeDeadlineSeconds");
    match (deadline(old), deadline(new)) {
        (Some(before), Some(after)) if after > before => {
            errors.invalid(&path, after, "must be less than or equal to previous value");
            return errors;
        }
        (Some(_), None) => {
            errors.invalid(&path, Value::Null, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
    added_tolerations(new, old, &spec.child("tolerations"), &mut errors);
    let comparable = comparable(new, old);
    if comparable != old["spec"] {
        let diff = diff(&old["spec"], &comparable);
        errors
            .forbidden(&spec, &format!("pod updates may not change fields other than {MAY_CHANGE}\n{diff}"));
    }
    errors
}

/// How one value differs from another, as a unified diff of their JSON.
pub(super) fn diff(old: &Value, new: &Value) -> String {
    let lines = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    TextDiff::from_lines(lines(old), lines(new)).unified_diff().context_radius(3).to_string()
}

fn added_tolerations(new: &Value, old: &Value, path: &Path, errors: &mut Errors) {
    let all = |pod: &Value| -> Vec<Value> {
        let all = pod["spec"]["tolerations"].as_array().into_iter().flatten();
        all.map(|toleration| {
            let mut toleration = toleration.clone();
            if let Some(fields) = toleration.as_object_mut() {
                fields.shift_remove("tolerationSeconds");
            }
            toleration
        })
        .collect()
    };
    let after = all(new);
    if all(old).iter().any(|before| !after.contains(before)) {
        errors.forbidden(path, "existing toleration can not be modified except its tolerationSeconds");
    }
}

/// The new spec with the old one's values where they may change.
fn comparable(new: &Value, old: &Value) -> Value {
    let mut spec = new["spec"].clone();
    for list in ["containers", "initContainers"] {
        let images = containers(old, list).map(|container| container["image"].clone());
        let new = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        new.zip(images).for_each(|(container, image)| container["image"] = image);
    }
    let mut fields = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let grace = |pod: &Value| pod["spec"]["terminationGracePeriodSeconds"].as_i64();
    if grace(old).is_some_and(|before| before < 0) && grace(new) == Some(1) {
        fields.push("terminationGracePeriodSeconds");
    }
    for field in fields {
        match old["spec"].get(field) {
            Some(before) => spec[field] = before.clone(),
            None => {
                if let Some(spec) = spec.as_object_mut() {
                    spec.shift_remove(field);
                }
            }
        }
    }
    spec
}
