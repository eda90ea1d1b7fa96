//! The configuration of a kubelet, as far as the evidence of a case depends on it.

use evictlab_rules::threshold::{Threshold, ThresholdConfig, parse_threshold_config};
use serde::Deserialize;
use serde_json::Value;

/// The thresholds of a kubelet's configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "KubeletConfigFields")]
pub struct KubeletConfig(ThresholdConfig);

/// A configuration with or without the wrapper that `configz` adds.
#[derive(Deserialize)]
struct KubeletConfigFields {
    kubeletconfig: Option<ThresholdConfig>,
    #[serde(flatten)]
    config: ThresholdConfig,
}

impl From<KubeletConfigFields> for KubeletConfig {
    fn from(fields: KubeletConfigFields) -> Self {
        Self(fields.kubeletconfig.unwrap_or(fields.config))
    }
}

impl KubeletConfig {
    /// Returns the eviction thresholds. Empty if the kubelet would reject them.
    pub fn thresholds(&self) -> Vec<Threshold> {
        parse_threshold_config(&self.0).unwrap_or_default()
    }
}

/// Returns the eviction thresholds of a kubelet's configuration, with or without the wrapper
/// `kubeletconfig` that `configz` adds. Empty if the kubelet would reject them.
pub fn thresholds(config: &Value) -> Vec<Threshold> {
    KubeletConfig::deserialize(config).unwrap_or_default().thresholds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_a_configuration_with_and_without_its_wrapper() {
        let config = json!({"evictionHard": {"memory.available": "100Mi"}, "port": 10250});
        for (config, count) in [
            (json!({"kubeletconfig": config}), 1),
            (config, 1),
            (json!({"evictionHard": {"memory.available": "much"}}), 0),
            (Value::Null, 0),
        ] {
            let of_memory =
                thresholds(&config).iter().filter(|one| one.signal.to_string() == "memory.available").count();
            assert_eq!(of_memory, count, "{config}");
        }
    }
}
