//! Events in the form of `events.k8s.io/v1`: the same objects with other names of fields (`pkg/apis/events/v1/conversion.go`).

use serde_json::{Map, Value, json};

/// The core's name of each field that has another one.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A stored event as `events.k8s.io/v1` tells it.
pub fn to_new(event: &Value) -> Value {
    let renamed = |name: &str| NAMES.iter().find(|(core, _)| *core == name).map(|(_, new)| *new);
    with_version(event.clone(), renamed, "events.k8s.io/v1")
}

/// An event of `events.k8s.io/v1` as it is stored.
pub fn to_core(event: Value) -> Value {
    let renamed = |name: &str| NAMES.iter().find(|(_, new)| *new == name).map(|(core, _)| *core);
    with_version(event, renamed, "v1")
}

fn with_version(event: Value, renamed: impl Fn(&str) -> Option<&'static str>, version: &str) -> Value {
    let Value::Object(fields) = event else { return event };
    let fields = fields.into_iter().map(|(name, value)| match renamed(&name) {
        Some(other) => (other.to_owned(), value),
        None => (name, value),
    });
    let mut event: Map<String, Value> = fields.collect();
    event.insert("apiVersion".into(), json!(version));
    Value::Object(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_and_comes_back() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"name": "p"},
            "message": "m", "reason": "Evicted", "count": 2, "reportingComponent": "kubelet",
        });
        let new = to_new(&core);
        assert_eq!(
            new,
            json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "regarding": {"name": "p"},
                "note": "m", "reason": "Evicted", "deprecatedCount": 2, "reportingController": "kubelet",
            })
        );
        assert_eq!(to_core(new), core);
    }
}
