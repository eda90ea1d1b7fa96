//! `featureGates` of the configuration: `SetFromMap` of component-base/featuregate/feature_gate.go.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use serde_json::{Map, Value};

/// Gates by name, with their states by minor.
const TABLE: &str = include_str!("feature_gates.txt");
/// Newest minor of the table. Newer kubelets have the states of this minor, and accept other names.
const NEWEST: u32 = 37;

/// Feature gate that changes the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Evicted and preempted pods get the condition `DisruptionTarget`. Read through 1.30.
    PodDisruptionConditions,
    /// The grace period of a soft eviction can be longer than the pod's own. Read from 1.32 to
    /// 1.34.
    AllowOverwriteTerminationGracePeriodSeconds,
    /// Eviction messages read requests from the pod's status. Read there through 1.31; see also
    /// [`FeatureGates::resizes_pods`].
    InPlacePodVerticalScaling,
    /// Pod-level requests and limits count.
    PodLevelResources,
    /// Images and writable layers may have different file systems. Read since 1.29.
    KubeletSeparateDiskGC,
    /// Containers on cgroup v2 have `memory.high`.
    MemoryQoS,
    /// Statistics of pods and containers are those of the container runtime.
    PodAndContainerStatsFromCRI,
    /// Memory that huge pages reserve is not available. Read since 1.37.
    HugepageAwareEviction,
}

/// Gates that a configuration sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeatureGates {
    set: BTreeMap<String, bool>,
}

/// State of a gate in a kubelet version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GateState {
    stage: u8,
    default: bool,
    is_locked: bool,
}

impl Gate {
    fn name(self) -> &'static str {
        match self {
            Self::PodDisruptionConditions => "PodDisruptionConditions",
            Self::AllowOverwriteTerminationGracePeriodSeconds => {
                "AllowOverwriteTerminationGracePeriodSeconds"
            }
            Self::InPlacePodVerticalScaling => "InPlacePodVerticalScaling",
            Self::PodLevelResources => "PodLevelResources",
            Self::KubeletSeparateDiskGC => "KubeletSeparateDiskGC",
            Self::MemoryQoS => "MemoryQoS",
            Self::PodAndContainerStatsFromCRI => "PodAndContainerStatsFromCRI",
            Self::HugepageAwareEviction => "HugepageAwareEviction",
        }
    }
}

impl Gate {
    /// Returns the behaviour of a version that does not read the gate; `None` if it does.
    fn fixed(self, version: &KubeletVersion) -> Option<bool> {
        let before = |minor| !version.at_least(minor);
        match self {
            Self::PodDisruptionConditions => version.at_least(31).then_some(true),
            Self::AllowOverwriteTerminationGracePeriodSeconds => match before(32) {
                true => Some(true),
                false => version.at_least(35).then_some(false),
            },
            Self::InPlacePodVerticalScaling => version.at_least(32).then_some(false),
            Self::PodLevelResources => before(34).then_some(true),
            Self::KubeletSeparateDiskGC => before(29).then_some(true),
            Self::MemoryQoS | Self::PodAndContainerStatsFromCRI => None,
            Self::HugepageAwareEviction => before(37).then_some(false),
        }
    }
}

impl FeatureGates {
    /// Returns whether a kubelet behaves as with the gate enabled, also one that does not read it.
    pub(crate) fn applies(&self, gate: Gate, version: &KubeletVersion) -> bool {
        gate.fixed(version).unwrap_or_else(|| self.is_enabled(gate, version))
    }

    /// Returns whether a kubelet resizes running pods in place. Before 1.33 the API server does not
    /// have the subresource by default.
    pub(crate) fn resizes_pods(&self, version: &KubeletVersion) -> bool {
        version.at_least(33) && self.is_enabled(Gate::InPlacePodVerticalScaling, version)
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
            [] => Ok(Self { set }),
            [one] => Err(one.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }

    /// Returns whether a gate is enabled in a version. `AllAlpha` and `AllBeta` apply to gates of
    /// their stage that are not set.
    fn is_enabled(&self, gate: Gate, version: &KubeletVersion) -> bool {
        let Some(state) = state(gate.name(), version) else { return false };
        let all = match state.stage {
            b'a' => "AllAlpha",
            b'b' => "AllBeta",
            _ => "",
        };
        let set = self.set.get(gate.name()).or_else(|| self.set.get(all));
        set.copied().unwrap_or(state.default)
    }
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
        use Gate::*;
        const OVERWRITE: Gate = AllowOverwriteTerminationGracePeriodSeconds;
        for (gate, minor, default) in [
            (PodDisruptionConditions, 27, true),
            (PodDisruptionConditions, 33, true),
            (OVERWRITE, 32, false),
            (InPlacePodVerticalScaling, 31, false),
            (InPlacePodVerticalScaling, 33, true),
            (PodLevelResources, 33, false),
            (PodLevelResources, 34, true),
            (PodLevelResources, 36, true),
            (HugepageAwareEviction, 36, false),
            (HugepageAwareEviction, 37, true),
        ] {
            let version = KubeletVersion::from_minor(minor);
            assert_eq!(FeatureGates::default().is_enabled(gate, &version), default, "{gate:?} 1.{minor}");
        }
        let version = KubeletVersion::from_minor(32);
        let all = read(32, json!({"AllAlpha": true, "AllBeta": false})).unwrap();
        assert!(all.is_enabled(InPlacePodVerticalScaling, &version));
        assert!(!all.is_enabled(OVERWRITE, &version), "it is deprecated");
        let but = read(32, json!({"AllAlpha": true, "InPlacePodVerticalScaling": false})).unwrap();
        assert!(!but.is_enabled(InPlacePodVerticalScaling, &version));
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
