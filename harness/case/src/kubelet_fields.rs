//! The fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) of all kubelets from 1.27 to
//! 1.36: staging/src/k8s.io/kubelet/config/v1beta1/types.go.

use evictlab_rules::threshold::Signal;
use serde_json::Value;

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

/// Maps from eviction signals.
const BY_SIGNAL: [&str; 4] =
    ["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"];

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

/// Returns the fields of a configuration that no kubelet has, and the values that a kubelet cannot
/// decode.
pub(crate) fn config_mistakes(config: &serde_json::Map<String, Value>) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    check_fields(&[], config, FIELDS, &mut mistakes);
    for map in BY_SIGNAL {
        let signals = Signal::ALL.map(Signal::as_str);
        for name in config.get(map).and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys) {
            if !signals.contains(&name.as_str()) {
                let path = yaml_path![map].to_vec();
                let note =
                    did_you_mean(name, signals).unwrap_or_else(|| format!("valid: {}", signals.join(", ")));
                let message = format!("unknown eviction signal `{name}`");
                mistakes.push(ConfigMistake { path, key: Some(name.clone()), message, note });
            }
        }
    }
    mistakes
}

fn check_fields(
    path: &[PathSegment],
    values: &serde_json::Map<String, Value>,
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
        let all = |map: &serde_json::Map<String, Value>, is: fn(&Value) -> bool| map.values().all(is);
        match (self, value) {
            (Bool, Value::Bool(_)) | (Number, Value::Number(_)) | (Text, Value::String(_)) => true,
            (Duration, Value::String(text)) => is_go_duration(text),
            (List, Value::Array(_)) | (Map, Value::Object(_)) => true,
            (Texts, Value::Array(items)) => items.iter().all(Value::is_string),
            (TextMap, Value::Object(map)) => all(map, Value::is_string),
            (BoolMap, Value::Object(map)) => all(map, Value::is_boolean),
            _ => false,
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

fn is_go_duration(text: &str) -> bool {
    let is_unit = |text: &str| ["ns", "us", "µs", "ms", "s", "m", "h"].contains(&text);
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    while let Some(end) = rest.find(|c| !is_number(c)).filter(|end| *end > 0) {
        let after = &rest[end..];
        let unit = after.find(is_number).unwrap_or(after.len());
        if !is_unit(&after[..unit]) {
            return false;
        }
        rest = &after[unit..];
        if rest.is_empty() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_unknown_fields_and_wrong_types() {
        let mistakes = |config: Value| -> Vec<String> {
            let all = config_mistakes(config.as_object().unwrap());
            all.into_iter().map(|one| format!("{} {}", one.message, one.note)).collect()
        };
        for valid in [
            json!({"evictionHard": {"memory.available": "100Mi"}, "podPidsLimit": 100, "featureGates": {"A": true}}),
            json!({"evictionPressureTransitionPeriod": "1m30s", "imageMinimumGCAge": "0", "memorySwap": {"swapBehavior": "NoSwap"}}),
            json!({"mergeDefaultEvictionSettings": true, "crashLoopBackOff": {"maxContainerRestartPeriod": "10s"}}),
            json!({"cpuCFSQuotaPeriod": "100ms", "evictionSoft": null, "logging": {"verbosity": 4}}),
        ] {
            assert_eq!(mistakes(valid.clone()), [""; 0], "{valid}");
        }
        for (invalid, part) in [
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
            (json!({"failSwapOn": "false"}), "`failSwapOn` must be true or false"),
        ] {
            let found = mistakes(invalid.clone());
            assert!(found.len() == 1 && found[0].starts_with(part), "{invalid}: {found:?}");
        }
    }
}
