//! Fields of KubeletConfiguration that the model uses, as types.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::error::ConfigError;
use super::fields::length_of;

/// Fields of a completed configuration. Those with a default in `defaults.json` are always present.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigFields {
    pub eviction_pressure_transition_period: GoDuration,
    #[serde(default)]
    pub eviction_max_pod_grace_period: i64,
    #[serde(default)]
    pub kernel_memcg_notification: bool,
    pub local_storage_capacity_isolation: bool,
    pub volume_stats_agg_period: GoDuration,
    pub node_status_update_frequency: GoDuration,
    pub node_status_report_frequency: GoDuration,
    pub node_lease_duration_seconds: i32,
    pub enforce_node_allocatable: Vec<String>,
    #[serde(default)]
    pub kube_reserved: Amounts,
    #[serde(default)]
    pub system_reserved: Amounts,
    #[serde(rename = "imageMinimumGCAge")]
    pub image_minimum_gc_age: GoDuration,
    #[serde(rename = "imageMaximumGCAge", default)]
    pub image_maximum_gc_age: GoDuration,
    #[serde(rename = "imageGCHighThresholdPercent")]
    pub image_gc_high_threshold_percent: i64,
    #[serde(rename = "imageGCLowThresholdPercent")]
    pub image_gc_low_threshold_percent: i64,
    pub max_pods: i64,
    pub container_log_max_size: String,
    pub container_log_max_files: i64,
    /// Since 1.30.
    pub container_log_monitor_interval: Option<GoDuration>,
    /// Since 1.31.
    #[serde(rename = "failCgroupV1", default)]
    pub fail_cgroup_v1: bool,
}

/// Amounts of resources, by name; `null` is the empty text.
pub(super) type Amounts = BTreeMap<String, Option<String>>;

/// A duration in the notation of Go.
#[derive(Clone, Debug, Default)]
pub(super) struct GoDuration {
    /// The text.
    pub text: String,
    /// The duration; `None` if it is negative.
    pub length: Option<Duration>,
}

impl GoDuration {
    /// Returns whether the duration is negative.
    pub(super) fn is_negative(&self) -> bool {
        self.text.starts_with('-')
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let length = length_of(&text);
        Ok(Self { text, length })
    }
}

impl ConfigFields {
    /// Reads a completed configuration.
    ///
    /// # Errors
    /// [`ConfigError::Decode`] for a value with the wrong type.
    pub(super) fn read(all: &Map<String, Value>) -> Result<Self, ConfigError> {
        Self::deserialize(all).map_err(|error| ConfigError::Decode(format!("json: {error}")))
    }
}
