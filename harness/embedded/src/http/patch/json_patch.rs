//! Patches without schema: JSON Patch and JSON Merge Patch.

use json_patch::Patch;
use serde::Deserialize;
use serde_json::Value;

use crate::apiserver::Status;

/// Applies a JSON Patch (RFC 6902).
///
/// # Errors
/// 400 for a malformed patch, 422 for a patch that does not apply.
pub(crate) fn json_patch(current: &Value, patch: &Value) -> Result<Value, Status> {
    let patch = Patch::deserialize(patch)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let mut new = current.clone();
    json_patch::patch(&mut new, &patch).map_err(|error| {
        let message = format!("the server rejected our request due to an error in our request: {error}");
        Status::new(422, "Invalid", message)
    })?;
    Ok(new)
}

/// Applies a JSON Merge Patch (RFC 7396).
pub(crate) fn merge_patch(current: &Value, patch: &Value) -> Value {
    let mut new = current.clone();
    json_patch::merge(&mut new, patch);
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rejects_malformed_and_failing_patches() {
        let code = |patch: Value| json_patch(&json!({"a": 1}), &patch).unwrap_err().code;
        assert_eq!(code(json!([{"op": "jump"}])), 400);
        assert_eq!(code(json!([{"op": "test", "path": "/a", "value": 2}])), 422);
    }
}
