//! Comparison of requested and effective kubelet configuration.

use evictlab_rules::parse_go_duration;
use serde_json::{Map, Value};

/// A field whose effective value is not the requested one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the field, such as `evictionHard.memory.available`.
    pub field: String,
    /// Requested value.
    pub requested: Value,
    /// Effective value.
    pub effective: Value,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: requested {}, effective {}", self.field, self.requested, self.effective)
    }
}

/// Fields of `requested` with another effective value. Durations are compared by length: `60s`
/// equals `1m0s`.
pub fn differences(requested: &Map<String, Value>, effective: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    for (field, value) in requested {
        collect(field, value, effective.get(field).unwrap_or(&Value::Null), &mut all);
    }
    all
}

fn collect(field: &str, requested: &Value, effective: &Value, all: &mut Vec<Difference>) {
    match (requested, effective) {
        (Value::Object(requested), Value::Object(effective)) => {
            for (key, value) in requested {
                collect(&format!("{field}.{key}"), value, effective.get(key).unwrap_or(&Value::Null), all);
            }
        }
        _ if is_equal(requested, effective) => {}
        // Without a field, the kubelet has its default.
        (Value::Null, _) => {}
        // configz omits fields that are false or 0 by default.
        (Value::Bool(false), Value::Null) => {}
        (Value::Number(number), Value::Null) if number.as_i64() == Some(0) => {}
        // The kubelet replaces zero by its default (kubernetes/kubernetes#129548). Cases judge by
        // which: a kubelet with another default is not misconfigured.
        _ if field == "evictionPressureTransitionPeriod" && is_equal(requested, &"0s".into()) => {}
        _ => {
            all.push(Difference {
                field: field.to_owned(),
                requested: requested.clone(),
                effective: effective.clone(),
            });
        }
    }
}

fn is_equal(requested: &Value, effective: &Value) -> bool {
    let length = |value: &Value| parse_go_duration(value.as_str()?).ok();
    requested == effective || matches!((length(requested), length(effective)), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn compares_only_requested_fields() {
        let zero = "evictionPressureTransitionPeriod";
        let requested = json!({"evictionHard": {"memory.available": "1Gi"}, "a": "60s", "h": "1500ms", "b": true, "c": [1], "e": false, "g": 0, "f": null, zero: "0s"});
        for default in ["5m0s", "30s", "0s"] {
            let effective = json!({"evictionHard": {"memory.available": "1Gi", "nodefs.available": "0%"}, "a": "1m0s", "h": "1.5s", "b": true, "c": [1], "d": 4, "f": {"g": 1}, zero: default});
            assert_eq!(differences(requested.as_object().unwrap(), &effective), [], "{default}");
        }
    }

    #[test]
    fn reports_ignored_and_changed_fields() {
        let requested =
            json!({"evictionHard": {"memory.available": "1Gi"}, "transition": "0s", "unknown": 1});
        let effective = json!({"evictionHard": {"nodefs.available": "0%"}, "transition": "5m0s"});
        let reported: Vec<String> =
            differences(requested.as_object().unwrap(), &effective).iter().map(ToString::to_string).collect();
        assert_eq!(
            reported,
            [
                "evictionHard.memory.available: requested \"1Gi\", effective null",
                "transition: requested \"0s\", effective \"5m0s\"",
                "unknown: requested 1, effective null",
            ]
        );
    }
}
