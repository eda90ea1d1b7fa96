//! Lists of containers in a pod's spec.

use serde_json::Value;

/// The lists of containers, in the order of their validation.
pub(super) const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Returns the containers of a list of a pod or pod template.
pub(super) fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    items(&pod["spec"], list)
}

/// Returns the items of a list, which may be missing.
pub(super) fn items<'a>(value: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    value[list].as_array().into_iter().flatten()
}

/// Returns mutable items of a list, which may be missing.
pub(super) fn items_mut<'a>(value: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Appends an item to a list, which may be missing.
pub(super) fn push(value: &mut Value, list: &str, item: Value) {
    match &mut value[list] {
        Value::Array(items) => items.push(item),
        other => *other = serde_json::json!([item]),
    }
}

/// Returns the name of a container; empty if it is missing.
pub(super) fn name(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}
