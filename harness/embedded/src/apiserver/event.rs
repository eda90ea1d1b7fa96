//! Events: stored as core/v1, also served as events.k8s.io/v1.

use serde_json::{Map, Value, json};

/// Second API version of events.
const EVENTS_V1: &str = "events.k8s.io/v1";

/// Fields with different names: in events.k8s.io/v1, and in core/v1.
const FIELD_NAMES: [(&str, &str); 8] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("related", "related"),
];

/// Converts an event from events.k8s.io/v1 to core/v1.
pub fn to_core(event: &mut Value) {
    rename_fields(event, |name| FIELD_NAMES.iter().find(|(new, _)| *new == name).map(|(_, core)| *core));
    event["apiVersion"] = json!("v1");
}

/// Converts an event from core/v1 to events.k8s.io/v1.
pub fn from_core(event: &mut Value) {
    rename_fields(event, |name| FIELD_NAMES.iter().find(|(_, core)| *core == name).map(|(new, _)| *new));
    event["apiVersion"] = json!(EVENTS_V1);
}

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

fn rename_fields(event: &mut Value, name: impl Fn(&str) -> Option<&'static str>) {
    let Value::Object(fields) = event else { return };
    *fields = std::mem::take(fields)
        .into_iter()
        .map(|(field, value)| (name(&field).map_or(field, str::to_owned), value))
        .collect::<Map<_, _>>();
}
