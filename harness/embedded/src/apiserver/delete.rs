//! Deletion of objects.

use serde_json::Value;

use super::objects::{check_preconditions, find, finish_update, increment_generation, replace};
use super::options::{DeleteOptions, DeleteResult, ObjectPath};
use super::status::{self, Status};
use super::{metadata, namespace, pod, workload};
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Deletes an object: a pod with its grace period, a namespace by its controller, an object with
/// finalizers once these are removed.
///
/// # Errors
/// 404 if the object does not exist, 409 if a precondition is violated, 403 for the namespaces that
/// every cluster needs.
pub(crate) fn delete(
    ctx: &mut SimContext,
    kind: Kind,
    namespace: &str,
    name: &str,
    options: DeleteOptions,
) -> Result<DeleteResult, Status> {
    match kind {
        Kind::Pod => return pod::delete(ctx, namespace, name, &options),
        Kind::Namespace => return namespace::delete(ctx, name, &options),
        _ => {}
    }
    let old = find(ctx, ObjectPath { kind, namespace, name })?;
    check_preconditions(kind, name, &old, &options.preconditions)?;
    let mut object = Value::clone(&old);
    if workload::is_workload(kind) {
        metadata::set_foreground_finalizer(&mut object, options.foreground);
    }
    if object.finalizers().next().is_some() {
        if !object.is_deleting() {
            object.metadata_mut().write("deletionTimestamp", ctx.epoch().meta_time(ctx.now));
            object.metadata_mut().write("deletionGracePeriodSeconds", 0);
            increment_generation(&mut object);
        }
        return replace(ctx, kind, name, object).map(DeleteResult::Object);
    }
    let last = ctx.store.remove(kind, namespace, name);
    // Service accounts are returned: `ReturnDeletedObject` of their storage.
    if kind == Kind::ServiceAccount {
        return Ok(DeleteResult::Object(last.unwrap_or(old)));
    }
    Ok(DeleteResult::Status(status::deleted(kind, name, &old)))
}

/// Removes a finalizer from an object. An object that is being deleted is removed with its last
/// finalizer. An object that does not exist is ignored.
pub(crate) fn remove_finalizer(
    ctx: &mut SimContext,
    kind: Kind,
    namespace: &str,
    name: &str,
    finalizer: &str,
) {
    let path = ObjectPath { kind, namespace, name };
    let Ok(old) = find(ctx, path) else { return };
    let mut object = Value::clone(&old);
    metadata::remove_finalizer(&mut object, finalizer);
    // The object exists and its version is current, so the update cannot fail.
    let _ = finish_update(ctx, path, object, Vec::new());
}
