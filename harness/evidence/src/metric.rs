//! Metrics of the kubelet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// A metric at the end of a case, with one set of labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Labels, such as `{eviction_signal: memory.available}`.
    pub labels: BTreeMap<String, String>,
    /// Value.
    #[serde(serialize_with = "integer_if_integral")]
    pub value: f64,
    /// Difference from the value before the pods of the case were created. A restart of the kubelet
    /// resets counters: then it is the value.
    #[serde(serialize_with = "integer_if_integral")]
    pub increase: f64,
}

/// Writes counts as integers, which expressions compare with `1` rather than `1.0`.
fn integer_if_integral<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const LARGEST: f64 = (1_i64 << 53) as f64;
    if value.fract() == 0.0 && value.abs() <= LARGEST {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_are_integers() {
        let metric = Metric { labels: BTreeMap::new(), value: 2.0, increase: 0.5 };
        assert_eq!(json!(metric), json!({"labels": {}, "value": 2, "increase": 0.5}));
        assert_eq!(serde_json::from_value::<Metric>(json!(metric)).unwrap(), metric);
    }
}
