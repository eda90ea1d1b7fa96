//! The configuration of a kubelet, as far as the evidence of a case depends on it.

use evictlab_rules::KubeletVersion;
use evictlab_rules::threshold::{MissingDefaults, Threshold, ThresholdConfig, parse_threshold_config};
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

/// Returns the default thresholds that a kubelet does not have, by its complete configuration from
/// `configz`. `None` if the configuration cannot be read.
pub fn missing_defaults(version: &KubeletVersion, configz: &Value) -> Option<MissingDefaults> {
    MissingDefaults::find(version, &KubeletConfig::deserialize(configz).ok()?.0)
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
    fn finds_default_thresholds_that_an_explicit_map_disables() {
        let all = json!({"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%"});
        let rows = [
            (
                36,
                json!({"evictionHard": {"memory.available": "500Mi"}}),
                "evictionHard sets only memory.available: no threshold for nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree",
            ),
            (
                29,
                json!({"evictionHard": {"memory.available": "500Mi", "pid.available": "10%"}}),
                "evictionHard sets only memory.available, pid.available: no threshold for nodefs.available, nodefs.inodesFree, imagefs.available",
            ),
            // kind disables the thresholds on its disks by name.
            (
                36,
                json!({"evictionHard": {"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"}}),
                "evictionHard sets only imagefs.available, nodefs.available, nodefs.inodesFree: no threshold for memory.available, imagefs.inodesFree",
            ),
            (
                36,
                json!({}),
                "evictionHard is empty: no threshold for memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree",
            ),
            (
                36,
                json!({"evictionHard": all}),
                "evictionHard sets only imagefs.available, memory.available, nodefs.available, nodefs.inodesFree: no threshold for imagefs.inodesFree",
            ),
            (29, json!({"evictionHard": all}), ""),
            // A soft threshold is a threshold.
            (36, json!({"evictionHard": all, "evictionSoft": {"imagefs.inodesFree": "5%"}}), ""),
        ];
        for (minor, config, warning) in rows {
            let version = KubeletVersion::from_minor(minor);
            for config in [json!({"kubeletconfig": config}), config] {
                let found = missing_defaults(&version, &config);
                let text = found.map(|found| found.to_string()).unwrap_or_default();
                assert_eq!(text, warning, "{config}");
            }
        }
    }

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
