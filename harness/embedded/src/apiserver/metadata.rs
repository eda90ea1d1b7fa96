//! Object metadata: names, namespaces, server-set fields, finalizers.

use evictlab_rules::pod::CONFIG_MIRROR_ANNOTATION;
use serde_json::{Map, Value, json};

use super::field_errors::{FieldErrors, FieldPath};
use super::names::{self, NameRule};
use super::options::ObjectPath;
use super::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt, Scope};

/// Finalizer of an object that is deleted after its dependents.
pub(crate) const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

/// Completes the metadata of a new object and returns its name: sets the namespace, generates the
/// name from `generateName`, removes server-set fields.
pub(super) fn prepare(
    ctx: &mut SimContext,
    kind: Kind,
    namespace: &str,
    object: &mut Value,
) -> Result<String, Status> {
    if !text(object, "resourceVersion").is_empty() {
        return Err(Status::internal("resourceVersion should not be set on objects to be created"));
    }
    set_namespace(kind, namespace, object)?;
    let name = match (text(object, "name"), text(object, "generateName")) {
        ("", "") => String::new(),
        ("", prefix) => {
            let prefix = prefix.to_owned();
            ctx.store.generated(&prefix)
        }
        (name, _) => name.to_owned(),
    };
    let fields = fields(object);
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    ] {
        fields.shift_remove(field);
    }
    remove_empty(fields);
    if !name.is_empty() {
        fields.insert("name".to_owned(), json!(name));
    }
    Ok(name)
}

/// Sets the namespace of an object to that of the request; rejects another one.
fn set_namespace(kind: Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
    match (kind.scope(), text(object, "namespace")) {
        (Scope::Namespaced, stated) => {
            if !stated.is_empty() && stated != namespace {
                let message =
                    "the namespace of the provided object does not match the namespace sent on the request";
                return Err(Status::bad_request(message));
            }
            fields(object).insert("namespace".to_owned(), json!(namespace));
        }
        (Scope::Cluster, _) => {
            fields(object).shift_remove("namespace");
        }
    }
    Ok(())
}

/// Rejects objects in a namespace that does not exist or is terminating.
pub(super) fn check_namespace(
    ctx: &SimContext,
    kind: Kind,
    namespace: &str,
    name: &str,
) -> Result<(), Status> {
    if kind.scope() == Scope::Cluster {
        return Ok(());
    }
    let Some(object) = ctx.store.get(Kind::Namespace, "", namespace) else {
        return Err(Status::not_found(Kind::Namespace, namespace));
    };
    if object.phase() != "Terminating" {
        return Ok(());
    }
    let reason =
        format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = format!("namespace {namespace} is being terminated");
    let error = Status::forbidden(kind, name, &reason);
    Err(error.with_cause("NamespaceTerminating", cause, Some("metadata.namespace")))
}

/// Copies server-set metadata from the old object to an updated one. Rejects another name, uid or
/// resource version.
pub(super) fn carry_over(path: ObjectPath, old: &Value, object: &mut Value) -> Result<(), Status> {
    let ObjectPath { kind, namespace, name } = path;
    let stated = text(object, "name");
    if !stated.is_empty() && stated != name {
        let message =
            format!("the name of the object ({stated}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(message));
    }
    set_namespace(kind, namespace, object)?;
    let (stated, actual) = (text(object, "uid").to_owned(), text(old, "uid"));
    if !stated.is_empty() && stated != actual {
        let reason =
            format!("Precondition failed: UID in precondition: {stated}, UID in object meta: {actual}");
        return Err(Status::conflict(kind, name, &reason));
    }
    let version = text(object, "resourceVersion");
    if version.is_empty() && matches!(kind, Kind::PodDisruptionBudget | Kind::Lease | Kind::ServiceAccount) {
        let mut errors = FieldErrors::default();
        let path = FieldPath::new("metadata").child("resourceVersion");
        errors.invalid(&path, "", "must be specified for an update");
        errors.into_result(kind, name)?;
    }
    if !version.is_empty() && version != text(old, "resourceVersion") {
        return Err(Status::modified(kind, name));
    }
    let fields = fields(object);
    fields.insert("name".to_owned(), json!(name));
    fields.shift_remove("managedFields");
    remove_empty(fields);
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ] {
        match old.metadata().get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.shift_remove(field),
        };
    }
    Ok(())
}

/// Validates name and labels.
pub(super) fn validate(object: &Value, rule: NameRule) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let path = FieldPath::new("metadata");
    match text(object, "name") {
        "" => errors.required(&path.child("name"), "name or generateName is required"),
        name => rule(name).iter().for_each(|message| errors.invalid(&path.child("name"), name, message)),
    }
    validate_labels(object.labels(), &path.child("labels"), &mut errors);
    errors
}

/// Validates the keys and values of labels.
pub(super) fn validate_labels(labels: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        for message in names::qualified_name(key) {
            errors.invalid(path, key.as_str(), &message);
        }
        let value = value.as_str().unwrap_or_default();
        names::label_value(value).iter().for_each(|message| errors.invalid(path, value, message));
    }
}

/// Adds the finalizer that keeps an object until the garbage collector has deleted its dependents,
/// or removes it.
pub(super) fn set_foreground_finalizer(object: &mut Value, foreground: bool) {
    remove_finalizer(object, FOREGROUND_FINALIZER);
    if foreground {
        object.metadata_mut().push("finalizers", json!(FOREGROUND_FINALIZER));
    }
}

/// Removes a finalizer from an object.
pub(super) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let left: Vec<&str> = object.finalizers().filter(|other| *other != finalizer).collect();
    let left = json!(left);
    let fields = fields(object);
    fields.insert("finalizers".to_owned(), left);
    remove_empty(fields);
}

/// Returns a string of the metadata; empty if the field is missing.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.metadata().text(field)
}

/// Returns whether a pod is a mirror pod, which represents a static pod.
pub(super) fn is_mirror_pod(pod: &Value) -> bool {
    pod.annotation(CONFIG_MIRROR_ANNOTATION).is_some()
}

fn fields(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = object.metadata_mut();
    if !metadata.is_object() {
        *metadata = json!({});
    }
    match metadata {
        Value::Object(fields) => fields,
        _ => unreachable!("metadata was set to an object above"),
    }
}

fn remove_empty(fields: &mut Map<String, Value>) {
    let is_empty = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    fields.retain(|_, value| !is_empty(value));
}
