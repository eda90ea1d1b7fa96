//! Events.

use serde_json::{Value, json};

/// Sets the fields that core/v1 always serializes.
pub(super) fn prepare(event: &mut Value) {
    for (field, value) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        if event.get(field).is_none() {
            event[field] = value;
        }
    }
}
