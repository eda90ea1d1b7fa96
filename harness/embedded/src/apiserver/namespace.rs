//! Namespaces.

use serde_json::{Value, json};

use super::objects::{check_preconditions, find, replace};
use super::options::{DeleteOptions, Deleted, ObjectPath};
use super::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Namespaces that cannot be deleted (`NamespaceLifecycle`).
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Sets label, finalizer and status of a new namespace.
pub(super) fn prepare(name: &str, namespace: &mut Value) {
    if !name.is_empty() {
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    }
    namespace["spec"] = json!({"finalizers": ["kubernetes"]});
    namespace["status"] = json!({"phase": "Active"});
}

/// Restores the spec, which only the controller changes, and the name label.
pub(super) fn keep_spec(namespace: &mut Value, old: &Value) {
    namespace["spec"] = old["spec"].clone();
    namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = old["metadata"]["name"].clone();
}

/// Marks a namespace as terminating; the namespace controller deletes its contents.
pub(super) fn delete(ctx: &mut SimContext, name: &str, options: &DeleteOptions) -> Result<Deleted, Status> {
    if IMMORTAL.contains(&name) {
        return Err(Status::forbidden(Kind::Namespace, name, "this namespace may not be deleted"));
    }
    let old = find(ctx, ObjectPath { kind: Kind::Namespace, namespace: "", name })?;
    check_preconditions(Kind::Namespace, name, &old, &options.preconditions)?;
    if old.is_deleting() {
        return Ok(Deleted::Object(old));
    }
    let mut namespace = Value::clone(&old);
    namespace["metadata"]["deletionTimestamp"] = json!(ctx.epoch().seconds(ctx.now));
    namespace["status"]["phase"] = json!("Terminating");
    if options.dry_run {
        return Ok(Deleted::Object(namespace.into()));
    }
    replace(ctx, Kind::Namespace, name, namespace).map(Deleted::Object)
}
