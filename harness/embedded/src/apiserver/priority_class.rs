//! Priority classes.

use serde_json::{Value, json};

use super::field_errors::{FieldErrors, FieldPath};
use super::status::Status;
use super::{metadata, names};
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Largest value of a user-defined class.
const MAX_USER_VALUE: i64 = 1_000_000_000;

/// Prefix of the names of system classes.
const SYSTEM_PREFIX: &str = "system-";

/// Sets the defaults of a new class; rejects a second global default.
pub(super) fn prepare(ctx: &SimContext, name: &str, class: &mut Value) -> Result<(), Status> {
    if class["preemptionPolicy"].is_null() {
        class["preemptionPolicy"] = json!("PreemptLowerPriority");
    }
    if class["value"].is_null() {
        class["value"] = json!(0);
    }
    if class["globalDefault"] != true {
        return Ok(());
    }
    let other = ctx.store.list(Kind::PriorityClass, None).find(|other| other["globalDefault"] == true);
    let Some(other) = other else { return Ok(()) };
    let other = other.name();
    let reason = format!("PriorityClass {other} is already marked as default. Only one default can exist");
    Err(Status::forbidden(Kind::PriorityClass, name, &reason))
}

/// Validates a class.
pub(super) fn validate(class: &Value) -> FieldErrors {
    let mut errors = metadata::validate(class, names::dns_subdomain);
    let is_system = class.name().starts_with(SYSTEM_PREFIX);
    if !is_system && class.integer("value") > MAX_USER_VALUE {
        let detail = format!("maximum allowed value of a user defined priority is {MAX_USER_VALUE}");
        errors.forbidden(&FieldPath::new("value"), &detail);
    }
    errors
}

/// Validates an update: the value is immutable.
pub(super) fn validate_update(class: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if class.integer("value") != old.integer("value") {
        errors.forbidden(&FieldPath::new("value"), "may not be changed in an update.");
    }
    errors
}
