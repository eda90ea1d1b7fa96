//! Access to stored objects, with the API server's errors.

use std::sync::Arc;

use evictlab_rules::KubeletVersion;
use serde_json::Value;

use super::options::{ObjectPath, Preconditions, StoredObject};
use super::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};
use crate::storage::StoreError;

/// Returns a stored object, or 404.
pub(super) fn find(ctx: &SimContext, path: ObjectPath) -> Result<Arc<Value>, Status> {
    let object = ctx.store.get(path.kind, path.namespace, path.name).cloned();
    object.ok_or_else(|| Status::not_found(path.kind, path.name))
}

/// Replaces a stored object.
pub(super) fn replace(
    ctx: &mut SimContext,
    kind: Kind,
    name: &str,
    object: Value,
) -> Result<Arc<Value>, Status> {
    ctx.store.replace(kind, object).map_err(|error| store_error(kind, name, error))
}

/// Converts an error of the store.
pub(super) fn store_error(kind: Kind, name: &str, error: StoreError) -> Status {
    match error {
        StoreError::Missing => Status::not_found(kind, name),
        StoreError::Exists => Status::already_exists(kind, name),
        StoreError::Conflict => Status::modified(kind, name),
    }
}

/// Stores a changed object, or removes it if only its last finalizer kept it.
pub(super) fn finish_update(
    ctx: &mut SimContext,
    path: ObjectPath,
    object: Value,
    warnings: Vec<String>,
) -> Result<StoredObject, Status> {
    let is_deleted = object.is_deleting();
    let grace = object.metadata().integer("deletionGracePeriodSeconds");
    let stored = replace(ctx, path.kind, path.name, object)?;
    let is_kept = stored.finalizers().next().is_some() || path.kind == Kind::Namespace;
    if is_deleted && grace == 0 && !is_kept {
        ctx.store.remove(path.kind, path.namespace, path.name);
    }
    Ok(StoredObject { object: stored, warnings })
}

/// Checks the preconditions of a deletion; a violation is 409 `Conflict`.
pub(super) fn check_preconditions(
    kind: Kind,
    name: &str,
    object: &Value,
    preconditions: &Preconditions,
) -> Result<(), Status> {
    let Preconditions { uid, resource_version } = preconditions;
    for (what, field, expected, consequence) in [
        ("UID", "uid", uid, "deleted and then recreated"),
        ("ResourceVersion", "resourceVersion", resource_version, "modified"),
    ] {
        let actual = object.metadata().text(field);
        if let Some(expected) = expected.as_deref().filter(|&text| !text.is_empty() && text != actual) {
            let reason = format!(
                "the {what} in the precondition ({expected}) does not match the {what} in record ({actual}). The object might have been {consequence}"
            );
            return Err(Status::conflict(kind, name, &reason));
        }
    }
    Ok(())
}

/// Returns the version of the control plane: that of the newest kubelet, because a kubelet must not
/// be newer than its API server.
pub(crate) fn control_plane_version(ctx: &SimContext) -> KubeletVersion {
    let versions = ctx.store.kubelet_versions().filter_map(|version| version.parse().ok());
    versions.max().unwrap_or_else(|| KubeletVersion::from_minor(KubeletVersion::NEWEST_MINOR))
}

/// Increments `metadata.generation` of an object that has one.
pub(super) fn increment_generation(object: &mut Value) {
    if let Some(generation) = object.generation() {
        object.metadata_mut().write("generation", generation + 1);
    }
}
