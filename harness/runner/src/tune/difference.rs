//! Whether the kubelet runs with what it was given.

use std::time::Duration;

use serde_json::{Map, Value};

/// A field that is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field's path, such as `evictionHard.memory.available`.
    pub field: String,
    /// What was asked for.
    pub asked: Value,
    /// What the kubelet runs with.
    pub found: Value,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} was asked for, {} is in force", self.field, self.asked, self.found)
    }
}

/// Every field of `asked` that `found` has otherwise. Durations are compared by length: `60s` is `1m0s`.
pub fn differences(asked: &Map<String, Value>, found: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    for (field, value) in asked {
        collect(field, value, found.get(field).unwrap_or(&Value::Null), &mut all);
    }
    all
}

fn collect(field: &str, asked: &Value, found: &Value, all: &mut Vec<Difference>) {
    match (asked, found) {
        (Value::Object(asked), Value::Object(found)) => {
            for (key, value) in asked {
                collect(&format!("{field}.{key}"), value, found.get(key).unwrap_or(&Value::Null), all);
            }
        }
        _ if same(asked, found) => {}
        // What is false by default is left out of configz when it is false.
        (Value::Bool(false), Value::Null) => {}
        // The kubelet takes a zero for unset, and its defaulting is older than any version we run (kubernetes/kubernetes#129548). A case may
        // be about just that.
        _ if field == "evictionPressureTransitionPeriod"
            && same(asked, &"0s".into())
            && same(found, &"5m".into()) => {}
        _ => {
            all.push(Difference { field: field.to_owned(), asked: asked.clone(), found: found.clone() });
        }
    }
}

fn same(asked: &Value, found: &Value) -> bool {
    let length = |value: &Value| -> Option<Duration> { humantime::parse_duration(value.as_str()?).ok() };
    asked == found || matches!((length(asked), length(found)), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_asked_for_is_compared() {
        let zero = "evictionPressureTransitionPeriod";
        let asked = json!({"evictionHard": {"memory.available": "1Gi"}, "a": "60s", "b": true, "c": [1], "e": false, zero: "0s"});
        let found = json!({"evictionHard": {"memory.available": "1Gi", "nodefs.available": "0%"}, "a": "1m0s", "b": true, "c": [1], "d": 4, zero: "5m0s"});
        assert_eq!(differences(asked.as_object().unwrap(), &found), []);
    }

    #[test]
    fn what_is_ignored_or_changed_is_named() {
        let asked = json!({"evictionHard": {"memory.available": "1Gi"}, "transition": "0s", "unknown": 1});
        let found = json!({"evictionHard": {"nodefs.available": "0%"}, "transition": "5m0s"});
        let said: Vec<String> =
            differences(asked.as_object().unwrap(), &found).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "evictionHard.memory.available: \"1Gi\" was asked for, null is in force",
                "transition: \"0s\" was asked for, \"5m0s\" is in force",
                "unknown: 1 was asked for, null is in force",
            ]
        );
    }
}
