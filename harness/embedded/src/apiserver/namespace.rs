//! Namespaces.

use serde_json::{Value, json};

use super::objects::{check_preconditions, find, replace};
use super::options::{DeleteOptions, DeleteResult, ObjectPath};
use super::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Namespaces that cannot be deleted (`NamespaceLifecycle`).
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Sets label, finalizer and status of a new namespace.
pub(super) fn prepare(name: &str, namespace: &mut Value) {
    if !name.is_empty() {
        set_name_label(namespace, name);
    }
    namespace.write("spec", json!({"finalizers": ["kubernetes"]}));
    namespace.write("status", json!({"phase": "Active"}));
}

/// Restores the spec, which only the controller changes, and the name label.
pub(super) fn keep_spec(namespace: &mut Value, old: &Value) {
    namespace.write("spec", old.spec());
    set_name_label(namespace, old.name());
}

fn set_name_label(namespace: &mut Value, name: &str) {
    namespace.metadata_mut()["labels"].write("kubernetes.io/metadata.name", name);
}

/// Marks a namespace as terminating; the namespace controller deletes its contents.
pub(super) fn delete(
    ctx: &mut SimContext,
    name: &str,
    options: &DeleteOptions,
) -> Result<DeleteResult, Status> {
    if IMMORTAL.contains(&name) {
        return Err(Status::forbidden(Kind::Namespace, name, "this namespace may not be deleted"));
    }
    let old = find(ctx, ObjectPath { kind: Kind::Namespace, namespace: "", name })?;
    check_preconditions(Kind::Namespace, name, &old, &options.preconditions)?;
    if old.is_deleting() {
        return Ok(DeleteResult::Object(old));
    }
    let mut namespace = Value::clone(&old);
    namespace.metadata_mut().write("deletionTimestamp", ctx.epoch().meta_time(ctx.now));
    namespace.status_mut().write("phase", "Terminating");
    replace(ctx, Kind::Namespace, name, namespace).map(DeleteResult::Object)
}
