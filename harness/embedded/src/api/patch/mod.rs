//! Patches: what a changed object looks like.

mod order;
mod strategic;
mod strategy;

use serde_json::Value;

pub use strategic::strategic;

use crate::registry::Status;

/// What PATCH takes.
pub const MEDIA_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
];

/// JSON Patch (RFC 6902).
pub fn json(current: &Value, patch: &Value) -> Result<Value, Status> {
    let bad = |error: serde_json::Error| Status::bad_request(format!("error decoding patch: {error}"));
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).map_err(bad)?;
    let mut new = current.clone();
    json_patch::patch(&mut new, &patch).map_err(|error| Status {
        code: 422,
        reason: "Invalid",
        message: format!("the server rejected our request due to an error in our request: {error}"),
        details: None,
    })?;
    Ok(new)
}

/// JSON Merge Patch (RFC 7396).
pub fn merge(current: &Value, patch: &Value) -> Value {
    let mut new = current.clone();
    json_patch::merge(&mut new, patch);
    new
}
