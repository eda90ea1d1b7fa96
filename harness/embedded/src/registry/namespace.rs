//! Namespaces.

use serde_json::{Value, json};

use super::{DeleteOptions, Deleted, Status};
use crate::store::Kind;
use crate::world::Ctx;

/// Those that no cluster can do without (`NamespaceLifecycle`).
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Makes a new namespace whole.
pub(super) fn prepare(name: &str, namespace: &mut Value) {
    if !name.is_empty() {
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    }
    namespace["spec"] = json!({"finalizers": ["kubernetes"]});
    namespace["status"] = json!({"phase": "Active"});
}

/// Keeps what only the controller changes, and the label that names it.
pub(super) fn keep_spec(namespace: &mut Value, old: &Value) {
    namespace["spec"] = old["spec"].clone();
    namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = old["metadata"]["name"].clone();
}

/// Marks a namespace as terminating; the controller does the rest.
pub(super) fn delete(ctx: &mut Ctx, name: &str, how: &DeleteOptions) -> Result<Deleted, Status> {
    if IMMORTAL.contains(&name) {
        return Err(Status::forbidden(Kind::Namespace, name, "this namespace may not be deleted"));
    }
    let old = super::found(ctx, Kind::Namespace, "", name)?;
    super::check_preconditions(Kind::Namespace, name, &old, &how.preconditions)?;
    if old["metadata"]["deletionTimestamp"].is_string() {
        return Ok(Deleted::Object(old));
    }
    let mut namespace = Value::clone(&old);
    namespace["metadata"]["deletionTimestamp"] = json!(ctx.epoch().seconds(ctx.now));
    namespace["status"]["phase"] = json!("Terminating");
    if how.dry_run {
        return Ok(Deleted::Object(namespace.into()));
    }
    super::replace(ctx, Kind::Namespace, name, namespace).map(Deleted::Object)
}
