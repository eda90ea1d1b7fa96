//! Events, as core/v1 has them.

use serde_json::{Value, json};

use super::field::{Errors, Path};
use super::meta;

/// Writes the fields that every event has.
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

/// Checks an event as far as core/v1 does: it lives with what it is about. What lives in no namespace is told in `default`.
pub(super) fn validate(event: &Value) -> Errors {
    let mut errors = meta::validate(event, |_| Vec::new());
    let own = meta::text(event, "namespace");
    let about = event["involvedObject"]["namespace"].as_str().unwrap_or_default();
    let fits = match about {
        "" => ["default", "kube-system"].contains(&own),
        about => about == own,
    };
    if !fits {
        let path = Path::new("involvedObject").child("namespace");
        errors.invalid(&path, about, "does not match event.namespace");
    }
    errors
}
