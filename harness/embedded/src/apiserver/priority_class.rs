//! Priority classes.

use serde_json::{Value, json};

use super::field_errors::{FieldErrors, FieldPath};
use super::{metadata, names};
use crate::resource::ObjectExt;

/// Largest value of a user-defined class.
const MAX_USER_VALUE: i64 = 1_000_000_000;

/// Prefix of the names of system classes.
const SYSTEM_PREFIX: &str = "system-";

/// Sets the defaults of a new class.
pub(super) fn prepare(class: &mut Value) {
    class.set_default("preemptionPolicy", json!("PreemptLowerPriority"));
    class.set_default("value", json!(0));
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
