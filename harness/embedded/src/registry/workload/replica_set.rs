//! Replica sets: `pkg/apis/apps/validation`.

use serde_json::Value;

use super::super::field::Errors;

/// Checks one.
pub(super) fn validate(set: &Value) -> Errors {
    let mut errors = super::metadata(set);
    super::replicated(set, &mut errors);
    errors
}
