//! Updates of objects and of their subresources.

use std::sync::Arc;

use serde_json::Value;

use super::create::{create, prepare_event, validate};
use super::decode::decode;
use super::objects::{control_plane_version, find, finish_update, increment_generation};
use super::options::{FieldValidation, ObjectPath, StoredObject};
use super::status::{Status, StatusReason};
use super::{metadata, namespace, pod, priority_class, runtime_class, workload};
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Replaces an object, except its status. Events and leases that do not exist are created.
///
/// # Errors
/// As [`create`]; 404 if the object does not exist, 409 if the object states another
/// `resourceVersion`.
pub(crate) fn update(
    ctx: &mut SimContext,
    path: ObjectPath,
    mut object: Value,
    field_validation: FieldValidation,
) -> Result<StoredObject, Status> {
    let kind = path.kind;
    let old = match find(ctx, path) {
        Err(_) if matches!(kind, Kind::Event | Kind::Lease) => {
            return create(ctx, kind, path.namespace, object, field_validation);
        }
        old => old?,
    };
    let warnings = decode(kind, &mut object, field_validation)?;
    metadata::carry_over(path, &old, &mut object)?;
    let mut errors = match kind {
        Kind::Pod => pod::prepare_update(ctx, &mut object, &old),
        kind if workload::is_workload(kind) => workload::prepare_update(ctx, kind, &mut object, &old),
        _ => validate(kind, &object, &control_plane_version(ctx)),
    };
    if kind.has_status() {
        object.set_or_remove("status", old.get("status"));
    }
    match kind {
        Kind::Namespace => namespace::keep_spec(&mut object, &old),
        Kind::Event => prepare_event(&mut object),
        Kind::PriorityClass => errors.append(priority_class::validate_update(&object, &old)),
        Kind::RuntimeClass => errors.append(runtime_class::validate_update(&object, &old)),
        _ => {}
    }
    let has_generation = matches!(kind, Kind::Pod | Kind::PodDisruptionBudget) || workload::is_workload(kind);
    if has_generation && object.spec() != old.spec() {
        increment_generation(&mut object);
    }
    errors.into_result(kind, path.name)?;
    finish_update(ctx, path, object, warnings)
}

/// Replaces the status, the labels and the annotations of an object.
///
/// # Errors
/// As [`update`].
pub(crate) fn update_status(
    ctx: &mut SimContext,
    path: ObjectPath,
    mut object: Value,
    field_validation: FieldValidation,
) -> Result<StoredObject, Status> {
    let old = find(ctx, path)?;
    let warnings = decode(path.kind, &mut object, field_validation)?;
    metadata::carry_over(path, &old, &mut object)?;
    let mut new = Value::clone(&old);
    for field in ["labels", "annotations"] {
        new.metadata_mut().set_or_remove(field, object.metadata().get(field));
    }
    new.set_or_remove("status", object.get("status"));
    if path.kind == Kind::Pod
        && let Some(class) = old.status().get("qosClass")
    {
        new.status_mut().set_default("qosClass", class.clone());
    }
    finish_update(ctx, path, new, warnings)
}

/// Sets the ephemeral containers of a pod to those of `object`, a whole pod.
///
/// # Errors
/// 404 if the pod does not exist, 409 if `object` states another `resourceVersion`, 422 for invalid
/// ephemeral containers.
pub(crate) fn update_ephemeral_containers(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    object: Value,
    field_validation: FieldValidation,
) -> Result<StoredObject, Status> {
    let path = ObjectPath { kind: Kind::Pod, namespace, name };
    let (old, new, warnings) =
        merge_spec(ctx, path, object, field_validation, pod::with_ephemeral_containers)?;
    pod::validate_ephemeral_update(&new, &old).into_result(Kind::Pod, name)?;
    finish_update(ctx, path, new, warnings)
}

/// Sets the resources of a pod's containers to those of `object`, a whole pod; since 1.36 also its
/// pod-level resources.
///
/// # Errors
/// 404 if the pod does not exist, or the API server is older than 1.33; 403 since 1.36 if the node
/// of the pod can never have the resources; 409 if `object` states another `resourceVersion`; 422
/// for an invalid resize.
pub(crate) fn resize(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    object: Value,
    field_validation: FieldValidation,
) -> Result<StoredObject, Status> {
    let control_plane = control_plane_version(ctx);
    if !control_plane.at_least(33) {
        return Err(Status::new(StatusReason::NotFound, "the server could not find the requested resource"));
    }
    let path = ObjectPath { kind: Kind::Pod, namespace, name };
    let merge = if control_plane.at_least(36) { pod::with_all_resources } else { pod::with_resources };
    let (old, new, warnings) = merge_spec(ctx, path, object, field_validation, merge)?;
    pod::validate_resize(&new, &old, &control_plane).into_result(Kind::Pod, name)?;
    if control_plane.at_least(36)
        && let Some(node) = ctx.store.get(Kind::Node, "", new.spec().text("nodeName"))
        && let Some(reason) = pod::excess(&new, node)
    {
        return Err(Status::forbidden(Kind::Pod, name, &reason));
    }
    finish_update(ctx, path, new, warnings)
}

/// Reads the object of a request to a subresource, and merges it into the spec of the stored one.
/// Returns the stored object, the new one, and warnings.
fn merge_spec(
    ctx: &SimContext,
    path: ObjectPath,
    mut object: Value,
    field_validation: FieldValidation,
    merge: fn(&Value, &Value) -> Value,
) -> Result<(Arc<Value>, Value, Vec<String>), Status> {
    let old = find(ctx, path)?;
    let warnings = decode(path.kind, &mut object, field_validation)?;
    metadata::carry_over(path, &old, &mut object)?;
    let mut new = merge(&old, &object);
    if new.spec() != old.spec() {
        increment_generation(&mut new);
    }
    Ok((old, new, warnings))
}
