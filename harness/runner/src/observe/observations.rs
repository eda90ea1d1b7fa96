//! What was seen of one case on one node: the evidence, and nothing but the evidence.

use evictlab_rules::threshold::{Threshold, ThresholdConfig, parse_config};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Samples;

/// One case on one node, as the API server and the kubelet told it. Kubernetes objects are kept as they came,
/// without `managedFields`. Field names are those of the recordings; a recording deserializes into this.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observations {
    /// The case's name.
    pub scenario: String,
    /// What the node reported, such as `v1.32.13`.
    pub kubelet_version: String,
    /// The node's name.
    pub node: String,
    /// The cgroup version of the node's host, `v1` or `v2`; recordings before it was kept are of v1.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cgroup: String,
    /// What was changed in the node's KubeletConfiguration.
    #[serde(default)]
    pub kubelet_config_overrides: Map<String, Value>,
    /// Edit, kubelet restart, until `configz` said so, in seconds.
    #[serde(default)]
    pub tune_seconds: f64,
    /// First pod created until every expected eviction was in `status.reason`, in seconds; none: not within the time.
    #[serde(default)]
    pub seconds_to_outcome: Option<f64>,
    /// The pods as the API answered to their creation.
    #[serde(default)]
    pub pods_created: Vec<Value>,
    /// The pods at the end.
    #[serde(default)]
    pub pods_final: Vec<Value>,
    /// All events of the namespace and of the node since the case began, in order of arrival.
    #[serde(default)]
    pub events: Vec<Value>,
    /// The node's `status.conditions` and `spec.taints` at the end.
    #[serde(default)]
    pub node_status: Value,
    /// `/stats/summary` before the pods.
    #[serde(default)]
    pub summary_before: Value,
    /// `/stats/summary` about twice a second, as [`sample`](fn@super::sample) cuts it down. Each is exactly `{"t": …, "node":
    /// {"memory": …, "fs": …, "rlimit": …}, "pods": […]}`: `t` in seconds since the first creation, three parts of the
    /// summary's `node`, and its `pods`, those of the case with their containers. A recording holds them as they are.
    #[serde(default)]
    pub samples: Samples,
    /// The eviction manager's lines of the kubelet's log.
    #[serde(default)]
    pub kubelet_log: Vec<String>,
    /// The kubelet's whole configuration while the case ran, as `configz` gave it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub configz: Value,
    /// `kubelet_evictions` by signal: by how much each grew during the case. The counter restarts with the kubelet.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub evictions_counted: Map<String, Value>,
    /// What each pod went through, by name: `{t, phase, reason, deleting, gone, conditions, containers}` for each change.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub pod_history: Map<String, Value>,
    /// What the node went through: `{t, conditions, taints, unschedulable}` for each change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_history: Vec<Value>,
    /// Pods that were gone at the end, as they last were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods_gone: Vec<Value>,
    /// The node itself, as it last was.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub node_object: Value,
    /// The case's objects beside the pods at the end, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub objects: Map<String, Value>,
    /// What the API answered to the steps that keep it: `{code, reason, message}` by the answer's name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub answers: Map<String, Value>,
    /// The logs of the containers that were asked for, by pod and container.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub container_logs: Map<String, Value>,
    /// The step that was waited for in vain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<String>,
    /// How long the case was watched, in seconds since the first pod's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The API's Status for an ephemeral container that it refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Value>,
}

impl Observations {
    /// The node's thresholds: of its whole configuration where that is known, else of what was changed in it. None where the kubelet would refuse them.
    pub fn thresholds(&self) -> Vec<Threshold> {
        let changed = Value::Object(self.kubelet_config_overrides.clone());
        let config = if self.configz.is_null() { &changed } else { &self.configz };
        thresholds(config)
    }
}

/// The thresholds of a kubelet's configuration, with or without the wrapper that `configz` has around it. None where the kubelet would refuse them.
pub fn thresholds(config: &Value) -> Vec<Threshold> {
    let config = config.get("kubeletconfig").unwrap_or(config);
    let config = ThresholdConfig::deserialize(config).ok();
    config.and_then(|config| parse_config(&config).ok()).unwrap_or_default()
}
