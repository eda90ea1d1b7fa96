//! `featureGates` of the configuration: `SetFromMap` of component-base/featuregate/feature_gate.go.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use serde_json::{Map, Value};

/// Gates by name, with their states by minor.
const TABLE: &str = include_str!("feature_gates.txt");
/// Newest minor of the table. Newer kubelets have the states of this minor, and accept other names.
const NEWEST: u32 = 37;

/// Effects of the feature gates of a kubelet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeatureGates {
    /// Evicted and preempted pods get the condition `DisruptionTarget`: `PodDisruptionConditions`,
    /// which is read through 1.30.
    pub disruption_conditions: bool,
    /// The grace period of a soft eviction can be longer than the pod's own: always through 1.31,
    /// then with `AllowOverwriteTerminationGracePeriodSeconds`, which is read through 1.34.
    pub overwrites_grace: bool,
    /// Eviction messages read requests from the pod's status: `InPlacePodVerticalScaling`, which is
    /// read there through 1.31.
    pub message_reads_status: bool,
    /// Running pods are resized: `InPlacePodVerticalScaling`. Before 1.33 the API server does not
    /// have the subresource by default.
    pub resizes_pods: bool,
    /// Pod-level requests and limits count: `PodLevelResources`, which 1.31 does not have and is on
    /// by default since 1.34.
    pub pod_level_resources: bool,
    /// Containers have restart policies of their own: `ContainerRestartRules`, on by default since
    /// 1.35.
    pub container_restart_rules: bool,
    /// Hooks of containers can sleep: `PodLifecycleSleepAction`, on by default since 1.30 and
    /// always since 1.37.
    pub sleep_hooks: bool,
    /// Images and writable layers may have different file systems: `KubeletSeparateDiskGC`, read
    /// since 1.29.
    pub separate_disk_gc: bool,
    /// Containers on cgroup v2 have `memory.high`: `MemoryQoS`.
    pub memory_qos: bool,
    /// Statistics of pods and containers are those of the container runtime:
    /// `PodAndContainerStatsFromCRI`.
    pub statistics_from_runtime: bool,
    /// Memory that huge pages reserve is not available: `HugepageAwareEviction`, read since 1.37.
    pub huge_pages_are_unavailable: bool,
}

/// State of a gate in a kubelet version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GateState {
    stage: u8,
    default: bool,
    is_locked: bool,
}

impl FeatureGates {
    /// Returns the behaviour of a version with the gates that a configuration sets.
    pub(crate) fn new(set: &BTreeMap<String, bool>, version: &KubeletVersion) -> Self {
        let is_enabled = |name| is_enabled(name, set, version);
        let since = |minor| version.at_least(minor);
        Self {
            disruption_conditions: since(31) || is_enabled("PodDisruptionConditions"),
            overwrites_grace: !since(32)
                || !since(35) && is_enabled("AllowOverwriteTerminationGracePeriodSeconds"),
            message_reads_status: !since(32) && is_enabled("InPlacePodVerticalScaling"),
            resizes_pods: since(33) && is_enabled("InPlacePodVerticalScaling"),
            pod_level_resources: is_enabled("PodLevelResources"),
            container_restart_rules: is_enabled("ContainerRestartRules"),
            sleep_hooks: since(37) || is_enabled("PodLifecycleSleepAction"),
            separate_disk_gc: !since(29) || is_enabled("KubeletSeparateDiskGC"),
            memory_qos: is_enabled("MemoryQoS"),
            statistics_from_runtime: is_enabled("PodAndContainerStatsFromCRI"),
            huge_pages_are_unavailable: since(37) && is_enabled("HugepageAwareEviction"),
        }
    }

    /// Reads `featureGates` of a configuration.
    ///
    /// # Errors
    /// The kubelet's message, for gates that the version does not have or whose default is locked.
    /// Since 1.31 it names all locked gates.
    pub(super) fn read(all: &Map<String, Value>, version: &KubeletVersion) -> Result<Self, String> {
        let gates = all.get("featureGates").and_then(Value::as_object).into_iter().flatten();
        let set: BTreeMap<String, bool> =
            gates.filter_map(|(name, value)| Some((name.clone(), value.as_bool()?))).collect();
        let mut errors = Vec::new();
        for (name, value) in &set {
            match state(name, version) {
                Some(state) if state.is_locked && state.default != *value => errors.push(format!(
                    "cannot set feature gate {name} to {value}, feature is locked to {}",
                    state.default
                )),
                None if version.minor <= NEWEST => {
                    errors.push(format!("unrecognized feature gate: {name}"));
                    break;
                }
                _ => {}
            }
            if !errors.is_empty() && !version.at_least(31) {
                break;
            }
        }
        match &errors[..] {
            [] => Ok(Self::new(&set, version)),
            [one] => Err(one.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }
}

/// Returns whether a gate is enabled in a version. `AllAlpha` and `AllBeta` apply to gates of their
/// stage that are not set.
fn is_enabled(name: &str, set: &BTreeMap<String, bool>, version: &KubeletVersion) -> bool {
    let Some(state) = state(name, version) else { return false };
    let all = match state.stage {
        b'a' => "AllAlpha",
        b'b' => "AllBeta",
        _ => "",
    };
    set.get(name).or_else(|| set.get(all)).copied().unwrap_or(state.default)
}

/// Returns the state of a gate; `None` if the version does not have the gate.
fn state(name: &str, version: &KubeletVersion) -> Option<GateState> {
    let row = TABLE.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let minor = version.minor.min(NEWEST);
    row.split(' ').find_map(|part| {
        let (minors, state) = part.split_once(':')?;
        let (first, last) = minors.split_once('-').unwrap_or((minors, minors));
        let is_in = (first.parse().ok()?..=last.parse().ok()?).contains(&minor);
        let [stage, default, lock @ ..] = state.as_bytes() else { return None };
        is_in.then_some(GateState { stage: *stage, default: *default == b'1', is_locked: !lock.is_empty() })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(minor: u32, gates: Value) -> Result<FeatureGates, String> {
        let all = json!({"featureGates": gates});
        FeatureGates::read(all.as_object().unwrap(), &KubeletVersion::from_minor(minor))
    }

    #[test]
    fn table_is_sorted_and_complete() {
        let rows: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(rows.len() > 300 && rows.is_sorted_by_key(|row| row.split(' ').next()));
        for row in rows {
            let (name, states) = row.split_once(' ').unwrap();
            let minors: Vec<u32> = (27..=NEWEST)
                .filter(|minor| state(name, &KubeletVersion::from_minor(*minor)).is_some())
                .collect();
            assert!(!minors.is_empty(), "{row}");
            let is_valid = |part: &str| {
                let (_, state) = part.split_once(':').unwrap();
                let stage = state.starts_with(['a', 'b', 'g', 'd']);
                stage && matches!(&state[1..], "0" | "1" | "0!" | "1!")
            };
            assert!(states.split(' ').all(is_valid), "{row}");
        }
    }

    #[test]
    fn states_by_version() {
        for (gate, minor, default) in [
            ("PodDisruptionConditions", 27, true),
            ("PodDisruptionConditions", 33, true),
            ("AllowOverwriteTerminationGracePeriodSeconds", 32, false),
            ("InPlacePodVerticalScaling", 31, false),
            ("InPlacePodVerticalScaling", 33, true),
            ("PodLevelResources", 33, false),
            ("PodLevelResources", 34, true),
            ("PodLevelResources", 36, true),
            ("PodLifecycleSleepAction", 28, false),
            ("PodLifecycleSleepAction", 29, false),
            ("PodLifecycleSleepAction", 30, true),
            ("HugepageAwareEviction", 36, false),
            ("HugepageAwareEviction", 37, true),
        ] {
            let version = KubeletVersion::from_minor(minor);
            assert_eq!(is_enabled(gate, &BTreeMap::new(), &version), default, "{gate} 1.{minor}");
        }
    }

    #[test]
    fn all_alpha_and_all_beta_apply_to_gates_that_are_not_set() {
        let by_default = FeatureGates::new(&BTreeMap::new(), &KubeletVersion::from_minor(32));
        assert_eq!(read(32, json!({"AllBeta": true})).unwrap(), by_default, "none is beta and off");
        let all = read(32, json!({"AllAlpha": true, "AllBeta": false})).unwrap();
        let expected = FeatureGates {
            memory_qos: true,
            statistics_from_runtime: true,
            pod_level_resources: true,
            ..by_default
        };
        assert_eq!(all, FeatureGates { separate_disk_gc: false, sleep_hooks: false, ..expected });
        assert!(!all.overwrites_grace, "it is deprecated");
        let but = read(32, json!({"AllAlpha": true, "MemoryQoS": false})).unwrap();
        assert_eq!(but, FeatureGates { memory_qos: false, ..expected });
        assert!(read(31, json!({"AllAlpha": true})).unwrap().message_reads_status);
        assert!(!read(33, json!({"AllBeta": false})).unwrap().resizes_pods);
    }

    #[test]
    fn rejects_unknown_and_locked_gates() {
        let unknown = "unrecognized feature gate: ";
        let locked =
            |name: &str| format!("cannot set feature gate {name} to false, feature is locked to true");
        let rows = [
            (31, json!({"Nonsense": true}), format!("{unknown}Nonsense")),
            (31, json!({"AllowOverwriteTerminationGracePeriodSeconds": true}),
                format!("{unknown}AllowOverwriteTerminationGracePeriodSeconds")),
            (34, json!({"PodDisruptionConditions": true}), format!("{unknown}PodDisruptionConditions")),
            (31, json!({"PodDisruptionConditions": false}), locked("PodDisruptionConditions")),
            (35, json!({"AllowOverwriteTerminationGracePeriodSeconds": true}),
                "cannot set feature gate AllowOverwriteTerminationGracePeriodSeconds to true, feature is locked to false".to_owned()),
            (36, json!({"HugepageAwareEviction": true}), format!("{unknown}HugepageAwareEviction")),
            (37, json!({"SidecarContainers": true}), format!("{unknown}SidecarContainers")),
            (31, json!({"PodDisruptionConditions": false, "SeccompDefault": false}), format!("{unknown}SeccompDefault")),
        ];
        for (minor, gates, message) in rows {
            let error = read(minor, gates.clone()).unwrap_err();
            assert!(
                error == message || error.ends_with(&format!(", {message}]")),
                "1.{minor} {gates}: {error}"
            );
        }
        assert!(read(31, json!({"PodDisruptionConditions": true})).is_ok());
        assert!(read(30, json!({"PodDisruptionConditions": false})).is_ok());
        assert!(read(37, json!({"HugepageAwareEviction": false})).is_ok());
        assert!(read(38, json!({"GateOfTheFuture": true})).is_ok());
    }
}
