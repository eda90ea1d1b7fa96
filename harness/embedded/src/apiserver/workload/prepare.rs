//! Creation and update of workloads.

use serde_json::{Value, json};

use super::validation::{validate, validate_update};
use super::{defaults, job};
use crate::apiserver::field_errors::FieldErrors;
use crate::apiserver::objects::control_plane_version;
use crate::apiserver::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Returns whether objects of a kind create pods.
pub(in crate::apiserver) fn is_workload(kind: Kind) -> bool {
    matches!(kind, Kind::Deployment | Kind::ReplicaSet | Kind::Job)
}

/// Sets defaults, generation and status of a new workload.
///
/// # Errors
/// 501 for a job that the model does not run.
pub(in crate::apiserver) fn prepare(
    ctx: &mut SimContext,
    kind: Kind,
    name: &str,
    object: &mut Value,
) -> Result<(), Status> {
    defaults::set_defaults(kind, object);
    object.metadata_mut().write("generation", 1);
    match kind {
        Kind::Job => {
            job::reject_unsupported(object)?;
            job::generate_selector(ctx, name, object);
            object.write("status", json!({}));
        }
        Kind::ReplicaSet => object.write("status", json!({"replicas": 0})),
        _ => object.write("status", json!({})),
    }
    Ok(())
}

/// Sets the defaults of an updated workload, and validates the workload and the update.
pub(in crate::apiserver) fn prepare_update(
    ctx: &SimContext,
    kind: Kind,
    object: &mut Value,
    old: &Value,
) -> FieldErrors {
    defaults::set_defaults(kind, object);
    let mut errors = validate(kind, object, &control_plane_version(ctx));
    validate_update(kind, object, old, &mut errors);
    errors
}
