//! Metrics of the kubelet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A metric at the end of a case, with one set of labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Labels, such as `{eviction_signal: memory.available}`.
    pub labels: BTreeMap<String, String>,
    /// Value.
    pub value: f64,
    /// Difference from the value before the pods of the case were created. A restart of the kubelet
    /// resets counters: then it is the value.
    pub increase: f64,
}
