//! Events: stored as core/v1, served as events.k8s.io/v1 too.

use serde_json::{Map, Value, json};

use super::field::{Errors, Path};
use super::meta;

/// The group and version that events are also served in.
const NEW: &str = "events.k8s.io/v1";

/// The fields that are called otherwise in events.k8s.io/v1: there, and in core/v1.
const NAMES: [(&str, &str); 8] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("related", "related"),
];

/// An event of events.k8s.io/v1 as one of core/v1.
pub fn to_core(event: &mut Value) {
    rename(event, |name| NAMES.iter().find(|(new, _)| *new == name).map(|(_, core)| *core));
    event["apiVersion"] = json!("v1");
}

/// An event of core/v1 as one of events.k8s.io/v1.
pub fn from_core(event: &mut Value) {
    rename(event, |name| NAMES.iter().find(|(_, core)| *core == name).map(|(new, _)| *new));
    event["apiVersion"] = json!(NEW);
}

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

fn rename(event: &mut Value, name: impl Fn(&str) -> Option<&'static str>) {
    let Value::Object(fields) = event else { return };
    *fields = std::mem::take(fields)
        .into_iter()
        .map(|(field, value)| (name(&field).map_or(field, str::to_owned), value))
        .collect::<Map<_, _>>();
}
