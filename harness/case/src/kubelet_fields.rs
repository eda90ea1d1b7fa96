//! The fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) of all kubelets, from 1.27 to
//! 1.36; those of 1.37 are assumed to be the same. Source:
//! staging/src/k8s.io/kubelet/config/v1beta1/types.go.

use std::collections::BTreeMap;

use evictlab_rules::parse_go_duration;
use evictlab_rules::threshold::{Signal, ThresholdConfig, ThresholdConfigError, parse_threshold_config};
use serde_json::{Map as JsonMap, Value};

use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::yaml_path;

/// Type of a field.
#[derive(Clone, Copy, Debug)]
enum FieldType {
    Bool,
    Number,
    Text,
    /// A duration of Go, such as `10s`.
    Duration,
    List,
    Texts,
    Map,
    TextMap,
    BoolMap,
    Object(&'static [(&'static str, FieldType)]),
}

use FieldType::{Bool, BoolMap, Duration, List, Map, Number, Object, Text, TextMap, Texts};

const FIELDS: &[(&str, FieldType)] = &[
    ("address", Text),
    ("allowedUnsafeSysctls", Texts),
    ("apiVersion", Text),
    (
        "authentication",
        Object(&[
            ("x509", Object(&[("clientCAFile", Text)])),
            ("webhook", Object(&[("enabled", Bool), ("cacheTTL", Duration)])),
            ("anonymous", Object(&[("enabled", Bool)])),
        ]),
    ),
    (
        "authorization",
        Object(&[
            ("mode", Text),
            ("webhook", Object(&[("cacheAuthorizedTTL", Duration), ("cacheUnauthorizedTTL", Duration)])),
        ]),
    ),
    ("cgroupDriver", Text),
    ("cgroupRoot", Text),
    ("cgroupsPerQOS", Bool),
    ("clusterDNS", Texts),
    ("clusterDomain", Text),
    ("configMapAndSecretChangeDetectionStrategy", Text),
    ("containerLogMaxFiles", Number),
    ("containerLogMaxSize", Text),
    ("containerLogMaxWorkers", Number),
    ("containerLogMonitorInterval", Duration),
    ("containerRuntimeEndpoint", Text),
    ("contentType", Text),
    ("cpuCFSQuota", Bool),
    ("cpuCFSQuotaPeriod", Duration),
    ("cpuManagerPolicy", Text),
    ("cpuManagerPolicyOptions", TextMap),
    ("cpuManagerReconcilePeriod", Duration),
    ("crashLoopBackOff", Object(&[("maxContainerRestartPeriod", Duration)])),
    ("enableContentionProfiling", Bool),
    ("enableControllerAttachDetach", Bool),
    ("enableDebugFlagsHandler", Bool),
    ("enableDebuggingHandlers", Bool),
    ("enableProfilingHandler", Bool),
    ("enableServer", Bool),
    ("enableSystemLogHandler", Bool),
    ("enableSystemLogQuery", Bool),
    ("enforceNodeAllocatable", Texts),
    ("eventBurst", Number),
    ("eventRecordQPS", Number),
    ("evictionHard", TextMap),
    ("evictionMaxPodGracePeriod", Number),
    ("evictionMinimumReclaim", TextMap),
    ("evictionPressureTransitionPeriod", Duration),
    ("evictionSoft", TextMap),
    ("evictionSoftGracePeriod", TextMap),
    ("failCgroupV1", Bool),
    ("failSwapOn", Bool),
    ("featureGates", BoolMap),
    ("fileCheckFrequency", Duration),
    ("hairpinMode", Text),
    ("healthzBindAddress", Text),
    ("healthzPort", Number),
    ("httpCheckFrequency", Duration),
    ("imageGCHighThresholdPercent", Number),
    ("imageGCLowThresholdPercent", Number),
    ("imageMaximumGCAge", Duration),
    ("imageMinimumGCAge", Duration),
    ("imagePullCredentialsVerificationPolicy", Text),
    ("imageServiceEndpoint", Text),
    ("iptablesDropBit", Number),
    ("iptablesMasqueradeBit", Number),
    ("kernelMemcgNotification", Bool),
    ("kind", Text),
    ("kubeAPIBurst", Number),
    ("kubeAPIQPS", Number),
    ("kubeReserved", TextMap),
    ("kubeReservedCgroup", Text),
    ("kubeletCgroups", Text),
    ("localStorageCapacityIsolation", Bool),
    ("logging", Map),
    ("makeIPTablesUtilChains", Bool),
    ("maxOpenFiles", Number),
    ("maxParallelImagePulls", Number),
    ("maxPods", Number),
    ("memoryManagerPolicy", Text),
    ("memoryReservationPolicy", Text),
    ("memorySwap", Object(&[("swapBehavior", Text)])),
    ("memoryThrottlingFactor", Number),
    ("mergeDefaultEvictionSettings", Bool),
    ("nodeLeaseDurationSeconds", Number),
    ("nodeStatusMaxImages", Number),
    ("nodeStatusReportFrequency", Duration),
    ("nodeStatusUpdateFrequency", Duration),
    ("oomScoreAdj", Number),
    ("podCIDR", Text),
    ("podLogsDir", Text),
    ("podPidsLimit", Number),
    ("podsPerCore", Number),
    ("port", Number),
    ("preloadedImagesVerificationAllowlist", Texts),
    ("protectKernelDefaults", Bool),
    ("providerID", Text),
    ("qosReserved", TextMap),
    ("readOnlyPort", Number),
    ("registerNode", Bool),
    ("registerWithTaints", List),
    ("registryBurst", Number),
    ("registryPullQPS", Number),
    ("reservedMemory", List),
    ("reservedSystemCPUs", Text),
    ("resolvConf", Text),
    ("rotateCertificates", Bool),
    ("runOnce", Bool),
    ("runtimeRequestTimeout", Duration),
    ("seccompDefault", Bool),
    ("serializeImagePulls", Bool),
    ("serverTLSBootstrap", Bool),
    ("showHiddenMetricsForVersion", Text),
    ("shutdownGracePeriod", Duration),
    ("shutdownGracePeriodByPodPriority", List),
    ("shutdownGracePeriodCriticalPods", Duration),
    ("singleProcessOOMKill", Bool),
    ("staticPodPath", Text),
    ("staticPodURL", Text),
    ("staticPodURLHeader", Map),
    ("streamingConnectionIdleTimeout", Duration),
    ("syncFrequency", Duration),
    ("systemCgroups", Text),
    ("systemReserved", TextMap),
    ("systemReservedCgroup", Text),
    ("tlsCertFile", Text),
    ("tlsCipherSuites", Texts),
    ("tlsCurvePreferences", List),
    ("tlsMinVersion", Text),
    ("tlsPrivateKeyFile", Text),
    ("topologyManagerPolicy", Text),
    ("topologyManagerPolicyOptions", TextMap),
    ("topologyManagerScope", Text),
    ("tracing", Map),
    ("userNamespaces", Object(&[("idsPerPod", Number)])),
    ("volumePluginDir", Text),
    ("volumeStatsAggPeriod", Duration),
];

/// A field whose keys are eviction signals.
#[derive(Clone, Copy, Debug)]
enum EvictionMap {
    Hard,
    Soft,
    SoftGracePeriod,
    MinimumReclaim,
}

/// Fields whose keys are eviction signals.
const EVICTION_MAPS: [EvictionMap; 4] =
    [EvictionMap::Hard, EvictionMap::Soft, EvictionMap::SoftGracePeriod, EvictionMap::MinimumReclaim];

impl EvictionMap {
    fn field_name(self) -> &'static str {
        match self {
            Self::Hard => "evictionHard",
            Self::Soft => "evictionSoft",
            Self::SoftGracePeriod => "evictionSoftGracePeriod",
            Self::MinimumReclaim => "evictionMinimumReclaim",
        }
    }
}

/// A mistake in a configuration.
#[derive(Debug)]
pub(crate) struct ConfigMistake {
    /// Path of the value, or of the mapping with a wrong key.
    pub(crate) path: Vec<PathSegment>,
    /// The wrong key.
    pub(crate) key: Option<String>,
    pub(crate) message: String,
    pub(crate) note: String,
}

/// Returns the names of the fields.
pub(crate) fn kubelet_fields() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|(name, _)| *name)
}

/// Returns the fields of a configuration that no kubelet has, the values of a wrong type, and the
/// eviction settings with which no kubelet starts.
pub(crate) fn config_mistakes(config: &JsonMap<String, Value>) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    check_fields(&[], config, FIELDS, &mut mistakes);
    for map in EVICTION_MAPS {
        for (name, value) in config.get(map.field_name()).and_then(Value::as_object).into_iter().flatten() {
            mistakes.extend(setting_mistake(map, name, value));
        }
    }
    mistakes
}

/// Returns the mistake in an entry of a map from eviction signals. A value other than text is a
/// mistake of the map.
fn setting_mistake(map: EvictionMap, name: &str, value: &Value) -> Option<ConfigMistake> {
    let signals = Signal::ALL.map(Signal::as_str);
    if !signals.contains(&name) {
        let path = yaml_path![map.field_name()].to_vec();
        let note = did_you_mean(name, signals).unwrap_or_else(|| format!("valid: {}", signals.join(", ")));
        let message = format!("unknown eviction signal `{name}`");
        return Some(ConfigMistake { path, key: Some(name.to_owned()), message, note });
    }
    let error = check_setting(map, name, value.as_str()?).err()?;
    let path = yaml_path![map.field_name(), name].to_vec();
    let note = "no kubelet starts with this value".to_owned();
    Some(ConfigMistake { path, key: None, message: error.to_string(), note })
}

/// Parses an entry of a map from eviction signals as a kubelet does.
fn check_setting(map: EvictionMap, signal: &str, text: &str) -> Result<(), ThresholdConfigError> {
    let entry = BTreeMap::from([(signal.to_owned(), text.to_owned())]);
    let mut config = ThresholdConfig::default();
    match map {
        // Soft thresholds have the values of hard ones; alone, they lack a grace period.
        EvictionMap::Hard | EvictionMap::Soft => config.eviction_hard = entry,
        EvictionMap::SoftGracePeriod => config.eviction_soft_grace_period = entry,
        EvictionMap::MinimumReclaim => config.eviction_minimum_reclaim = entry,
    }
    parse_threshold_config(&config).map(drop)
}

fn check_fields(
    path: &[PathSegment],
    values: &JsonMap<String, Value>,
    fields: &[(&'static str, FieldType)],
    mistakes: &mut Vec<ConfigMistake>,
) {
    for (name, value) in values {
        let Some((_, kind)) = fields.iter().find(|(field, _)| field == name) else {
            let known = fields.iter().map(|(field, _)| *field);
            let note =
                did_you_mean(name, known).unwrap_or_else(|| "kubelets ignore unknown fields".to_owned());
            let message = format!("the kubelet configuration has no field `{name}`");
            mistakes.push(ConfigMistake { path: path.to_vec(), key: Some(name.clone()), message, note });
            continue;
        };
        let path = [path, yaml_path![name.as_str()]].concat();
        match (kind, value) {
            (_, Value::Null) => {}
            (Object(fields), Value::Object(values)) => check_fields(&path, values, fields, mistakes),
            (kind, value) if kind.accepts(value) => {}
            (kind, _) => {
                let message = format!("`{name}` must be {}", kind.description());
                mistakes.push(ConfigMistake { path, key: None, message, note: String::new() });
            }
        }
    }
}

impl FieldType {
    fn accepts(self, value: &Value) -> bool {
        let is_map_of = |is: fn(&Value) -> bool| value.as_object().is_some_and(|map| map.values().all(is));
        match self {
            Bool => value.is_boolean(),
            Number => value.is_number(),
            Text => value.is_string(),
            Duration => value.as_str().is_some_and(|text| parse_go_duration(text).is_ok()),
            List => value.is_array(),
            Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Map | Object(_) => value.is_object(),
            TextMap => is_map_of(Value::is_string),
            BoolMap => is_map_of(Value::is_boolean),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Bool => "true or false",
            Number => "a number",
            Text => "a string",
            Duration => "a duration with a unit, such as \"10s\"",
            List => "a list",
            Texts => "a list of strings",
            Map | Object(_) => "a mapping",
            TextMap => "a mapping with strings as values, such as \"100Mi\"",
            BoolMap => "a mapping with true or false as values",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the displayed mistakes of a configuration.
    fn mistakes(config: &Value) -> Vec<String> {
        let all = config_mistakes(config.as_object().unwrap());
        all.into_iter().map(|one| format!("{} {}", one.message, one.note)).collect()
    }

    /// Checks that each configuration has one mistake, which begins with the text.
    fn check_rows(rows: &[(Value, &str)]) {
        for (invalid, start) in rows {
            let found = mistakes(invalid);
            assert!(found.len() == 1 && found[0].starts_with(start), "{invalid}: {found:?}");
        }
    }

    #[test]
    fn reports_unknown_fields_and_wrong_types() {
        for valid in [
            json!({"evictionHard": {"memory.available": "100Mi"}, "podPidsLimit": 100, "featureGates": {"A": true}}),
            json!({"evictionPressureTransitionPeriod": "1m30s", "imageMinimumGCAge": "0", "memorySwap": {"swapBehavior": "NoSwap"}}),
            json!({"mergeDefaultEvictionSettings": true, "crashLoopBackOff": {"maxContainerRestartPeriod": "10s"}}),
            json!({"cpuCFSQuotaPeriod": "100ms", "evictionSoft": null, "logging": {"verbosity": 4}}),
            json!({"cpuCFSQuotaPeriod": "100000\u{3bc}s", "syncFrequency": "1.5h", "volumeStatsAggPeriod": "-1s"}),
            json!({"evictionHard": {"memory.available": "0%", "pid.available": "10.5%"}, "evictionSoft": {"memory.available": "1Gi"}}),
            json!({"evictionSoftGracePeriod": {"memory.available": "0"}, "evictionMinimumReclaim": {"nodefs.available": "0"}}),
        ] {
            assert_eq!(mistakes(&valid), [""; 0], "{valid}");
        }
        check_rows(&[
            (
                json!({"evictionHrad": {}}),
                "the kubelet configuration has no field `evictionHrad` did you mean `evictionHard`?",
            ),
            (
                json!({"memorySwap": {"swapBehaviour": "NoSwap"}}),
                "the kubelet configuration has no field `swapBehaviour`",
            ),
            (json!({"podPidsLimit": "100"}), "`podPidsLimit` must be a number"),
            (
                json!({"evictionHard": {"memory.available": 100}}),
                "`evictionHard` must be a mapping with strings",
            ),
            (
                json!({"evictionHard": {"memory.availble": "1"}}),
                "unknown eviction signal `memory.availble` did you mean `memory.available`?",
            ),
            (json!({"imageMinimumGCAge": 10}), "`imageMinimumGCAge` must be a duration"),
            (json!({"syncFrequency": "10"}), "`syncFrequency` must be a duration"),
            (json!({"syncFrequency": "+-10s"}), "`syncFrequency` must be a duration"),
            (json!({"syncFrequency": "1..5m"}), "`syncFrequency` must be a duration"),
            (json!({"failSwapOn": "false"}), "`failSwapOn` must be true or false"),
        ]);
    }

    #[test]
    fn reports_eviction_settings_with_which_no_kubelet_starts() {
        check_rows(&[
            (
                json!({"evictionHard": {"memory.available": "lots"}}),
                "memory.available: invalid quantity \"lots\"",
            ),
            (
                json!({"evictionSoft": {"memory.available": "-1Gi"}}),
                "eviction threshold memory.available must be positive: -1Gi no kubelet starts with this value",
            ),
            (
                json!({"evictionHard": {"nodefs.available": "101%"}}),
                "eviction percentage threshold nodefs.available must be <= 100%: 101%",
            ),
            (json!({"evictionSoftGracePeriod": {"memory.available": "soon"}}), "invalid duration \"soon\""),
            (
                json!({"evictionSoftGracePeriod": {"memory.available": "-30s"}}),
                "invalid eviction grace period specified: -30s, must be a positive value",
            ),
            (
                json!({"evictionMinimumReclaim": {"memory.available": "0%"}}),
                "eviction percentage minimum reclaim memory.available must be positive: 0%",
            ),
        ]);
    }
}
