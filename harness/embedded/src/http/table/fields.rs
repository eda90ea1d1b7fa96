//! Access to optional fields of objects by JSON pointers.

use serde_json::Value;

/// Returns a string; empty if it is missing.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a string, or the default if it is missing or empty.
pub(crate) fn text_or<'a>(object: &'a Value, pointer: &str, default: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => default,
        text => text,
    }
}

/// Returns an integer; 0 if it is missing.
pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns the items of a list; empty if it is missing.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns true if the object has a condition of a type with status `True`.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = items(object, "/status/conditions");
    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}
