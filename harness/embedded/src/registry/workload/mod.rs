//! What makes pods: deployments, replica sets and jobs.

mod deployment;
mod failure_policy;
mod job;
mod replica_set;

use serde_json::{Value, json};

use super::field::{Errors, Path};
use super::share::not_negative;
use super::{Propagation, Status, meta, pod, selector};
use crate::store::Kind;
use crate::world::Ctx;

/// Whether objects of a kind make pods.
pub(super) fn is_one(kind: Kind) -> bool {
    matches!(kind, Kind::Deployment | Kind::ReplicaSet | Kind::Job)
}

/// Makes a new one whole.
///
/// # Errors
/// 501 for an indexed job.
pub(super) fn prepare(ctx: &mut Ctx, kind: Kind, name: &str, object: &mut Value) -> Result<(), Status> {
    fill(kind, object);
    object["metadata"]["generation"] = json!(1);
    match kind {
        Kind::Job => {
            job::check_mode(object)?;
            job::select(ctx, name, object);
            object["status"] = json!({});
        }
        Kind::ReplicaSet => object["status"] = json!({"replicas": 0}),
        _ => object["status"] = json!({}),
    }
    Ok(())
}

/// Checks one.
pub(super) fn validate(kind: Kind, object: &Value) -> Errors {
    match kind {
        Kind::Job => job::validate(object),
        Kind::ReplicaSet => replica_set::validate(object),
        _ => deployment::validate(object),
    }
}

/// Fills a changed one in, and checks it and the change.
pub(super) fn update(kind: Kind, object: &mut Value, old: &Value) -> Errors {
    fill(kind, object);
    let mut errors = validate(kind, object);
    match kind {
        Kind::Job => job::check_change(object, old, &mut errors),
        _ => immutable(object, old, "selector", &mut errors),
    }
    errors
}

/// What becomes of an object's dependents when nobody says it (`DefaultGarbageCollectionPolicy`).
pub(super) fn propagation(kind: Kind) -> Propagation {
    // batch/v1 is as old as that.
    if kind == Kind::Job { Propagation::Orphan } else { Propagation::Background }
}

/// Fills in what is not stated.
fn fill(kind: Kind, object: &mut Value) {
    pod::defaults::template(&mut object["spec"]["template"]);
    match kind {
        Kind::Job => job::fill(object),
        Kind::ReplicaSet => default(&mut object["spec"], "replicas", json!(1)),
        _ => deployment::fill(object),
    }
}

/// Sets a field that is missing.
fn default(value: &mut Value, field: &str, to: Value) {
    if value[field].is_null() {
        value[field] = to;
    }
}

/// Checks what deployments and replica sets have in common: how many pods, of which template, by which labels they are known.
fn replicated(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    for field in ["replicas", "minReadySeconds"] {
        not_negative(spec[field].as_i64(), &path.child(field), errors);
    }
    let selector = &spec["selector"];
    let place = path.child("selector");
    if !selector.is_object() {
        errors.required(&place, "");
    } else if is_empty(selector) {
        errors.invalid(&place, selector.clone(), "empty selector is invalid for deployment");
    }
    let path = path.child("template");
    if !is_empty(selector) {
        selected(object, &path, errors);
    }
    pod::validation::template(&spec["template"], &path, errors);
    let path = path.child("spec");
    let template = &spec["template"]["spec"];
    if let Some(policy) = template["restartPolicy"].as_str().filter(|policy| *policy != "Always") {
        errors.not_supported(&path.child("restartPolicy"), policy, &["Always"]);
    }
    if !template["activeDeadlineSeconds"].is_null() {
        let why = "activeDeadlineSeconds in ReplicaSet is not Supported";
        errors.forbidden(&path.child("activeDeadlineSeconds"), why);
    }
}

/// Sees that the labels of the template, which is at a path, are those that the selector wants.
fn selected(object: &Value, path: &Path, errors: &mut Errors) {
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    if !selector::matches(&object["spec"]["selector"], labels) {
        let why = "`selector` does not match template `labels`";
        errors.invalid(&path.child("metadata").child("labels"), labels.clone(), why);
    }
}

/// Whether a selector wants nothing of labels.
fn is_empty(selector: &Value) -> bool {
    let none = |field: &str| match &selector[field] {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    none("matchLabels") && none("matchExpressions")
}

/// Sees that a field of the spec stays as it was.
fn immutable(object: &Value, old: &Value, field: &str, errors: &mut Errors) {
    let (new, old) = (&object["spec"][field], &old["spec"][field]);
    if new != old {
        errors.invalid(&Path::new("spec").child(field), new.clone(), "field is immutable");
    }
}

/// Checks the metadata of one.
fn metadata(object: &Value) -> Errors {
    meta::validate(object, super::names::subdomain)
}
