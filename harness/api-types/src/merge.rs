//! Changes of objects.

use serde_json::{Map, Value};

/// Merges changes into the fields of an object: maps key by key, and all other values as a whole. A
/// change to `null` sets `null`.
///
/// ```
/// use evictlab_api_types::merge_fields;
/// use serde_json::json;
///
/// let mut config = json!({"evictionHard": {"nodefs.available": "0%"}, "clusterDNS": ["a"]});
/// let changes = json!({"evictionHard": {"memory.available": "1Gi"}, "clusterDNS": ["b"]});
/// merge_fields(config.as_object_mut().unwrap(), changes.as_object().unwrap());
/// let merged = json!({"nodefs.available": "0%", "memory.available": "1Gi"});
/// assert_eq!(config, json!({"evictionHard": merged, "clusterDNS": ["b"]}));
/// ```
pub fn merge_fields(into: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (key, value) in changes {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(changes)) => merge_fields(into, changes),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}
