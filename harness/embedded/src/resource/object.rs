//! Fields of objects and pods.

use serde_json::Value;

/// Returns a string of an object's metadata, or an empty string.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the name of the node that a pod is bound to, or an empty string.
pub(crate) fn node_name(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// Returns whether a pod's phase is final, so that the pod holds no resources.
pub(crate) fn is_terminal(pod: &Value) -> bool {
    ["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default())
}
