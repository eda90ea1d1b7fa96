//! Runtime classes.

use serde_json::Value;

use super::field_errors::{FieldErrors, FieldPath};
use super::{metadata, names};
use crate::resource::ObjectExt;

/// Validates a class (`ValidateRuntimeClass`).
pub(super) fn validate(class: &Value) -> FieldErrors {
    let mut errors = metadata::validate(class, names::dns_subdomain);
    let (path, handler) = (FieldPath::new("handler"), class.text("handler"));
    if handler.is_empty() {
        errors.required(&path, "");
    } else {
        for message in names::dns_label(handler) {
            errors.invalid(&path, handler, &message);
        }
    }
    errors
}

/// Validates an update: the handler is immutable.
pub(super) fn validate_update(class: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if class.text("handler") != old.text("handler") {
        errors.invalid(&FieldPath::new("handler"), class.text("handler"), "field is immutable");
    }
    errors
}
