//! Every recorded eviction of a real kubelet: its message parses, does not violate an invariant,
//! and is composed again from the pod and a sample.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use evictlab_rules::invariant::{EventEvidence, Finding, Invariant, InvariantOutcome, check};
use evictlab_rules::message::{
    Annotations, EvictionMessage, NodePressure, ThresholdClause, local_storage_eviction, pressure_eviction,
};
use evictlab_rules::pod::Pod;
use evictlab_rules::summary::{ContainerStats, FsStats, MemoryStats, PodStats, Sample};
use evictlab_rules::threshold::{Resource, Threshold, ThresholdConfig, parse_threshold_config};
use evictlab_rules::{EvictedEvent, KubeletVersion, evicted_events};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recording {
    kubelet_version: KubeletVersion,
    kubelet_config_overrides: ThresholdConfig,
    pods_final: Vec<Value>,
    events: Vec<Value>,
    samples: Vec<Sample>,
    #[serde(skip)]
    name: String,
}

/// One recorded event with the evidence on it.
struct RecordedEviction<'a> {
    recording: &'a Recording,
    pod: Pod,
    status: Option<String>,
    condition: Option<String>,
    event: EvictedEvent,
    events: Vec<EvictedEvent>,
}

/// Returns the folder of recordings to test instead of the project's own.
fn external_folder() -> Option<PathBuf> {
    env::var_os("EVICTLAB_RECORDINGS").map(PathBuf::from)
}

fn recordings() -> Vec<Recording> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rules/recordings");
    let folder = external_folder().unwrap_or(own);
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let versions = entries(&folder).into_iter().filter(|path| path.is_dir());
    let read = |path: PathBuf| {
        let mut recording: Recording = serde_json::from_slice(&fs::read(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let scenario = path.file_stem().unwrap().to_string_lossy();
        recording.name = format!("{} {scenario}", recording.kubelet_version);
        recording
    };
    versions.flat_map(|version| entries(&version)).map(read).collect()
}

fn evictions(recording: &Recording) -> Vec<RecordedEviction<'_>> {
    let all = evicted_events(&recording.events);
    all.iter()
        .map(|event| {
            let is_involved = |pod: &&Value| pod["metadata"]["uid"] == *event.uid;
            let pod = recording.pods_final.iter().find(is_involved).unwrap();
            let status = &pod["status"];
            let conditions = status["conditions"].as_array().unwrap();
            let condition = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget");
            RecordedEviction {
                recording,
                pod: serde_json::from_value(pod.clone()).unwrap(),
                status: (status["reason"] == "Evicted")
                    .then(|| status["message"].as_str().unwrap().to_owned()),
                condition: condition.map(|condition| condition["message"].as_str().unwrap().to_owned()),
                event: event.clone(),
                events: all.iter().filter(|other| other.uid == event.uid).cloned().collect(),
            }
        })
        .collect()
}

impl RecordedEviction<'_> {
    fn thresholds(&self) -> Vec<Threshold> {
        parse_threshold_config(&self.recording.kubelet_config_overrides).unwrap()
    }

    fn check(&self) -> Vec<Finding> {
        check(&EventEvidence {
            version: &self.recording.kubelet_version,
            pod: &self.pod,
            event: &self.event,
            events: &self.events,
            status: self.status.as_deref(),
            condition: self.condition.as_deref(),
            exceeded_grace: None,
            thresholds: &self.thresholds(),
            samples: &self.recording.samples,
        })
    }

    /// Composes message and annotations from `stats`, with containers in the order of `message`.
    fn compose(
        &self,
        message: &EvictionMessage,
        stats: &PodStats,
    ) -> Option<(String, BTreeMap<String, String>)> {
        let version = &self.recording.kubelet_version;
        let EvictionMessage::NodePressure(NodePressure { resource, threshold, containers, .. }) = message
        else {
            let composed = local_storage_eviction(version, &self.pod, stats, false)?;
            return Some((composed.to_string(), BTreeMap::new()));
        };
        let position =
            |container: &ContainerStats| containers.iter().position(|named| named.name == container.name);
        let mut stats = stats.clone();
        stats.containers.sort_by_key(position);
        let available = threshold.clone().unwrap().available;
        let configured =
            self.thresholds().into_iter().find(|threshold| threshold.signal.resource() == *resource);
        // If a soft threshold is configured, it is the one in the message.
        let soft =
            self.thresholds().into_iter().find(|t| t.signal.resource() == *resource && t.grace.is_some());
        let quantity = soft.or(configured).unwrap().value.resolve(None).unwrap();
        let threshold = Some(ThresholdClause { quantity, available });
        let eviction = pressure_eviction(version, &self.pod, Some(&stats), *resource, threshold);
        let annotations = eviction.annotations.as_ref().map(Annotations::to_map).unwrap_or_default();
        Some((EvictionMessage::NodePressure(eviction.message).to_string(), annotations))
    }

    fn samples(&self) -> impl Iterator<Item = &PodStats> {
        self.recording.samples.iter().filter_map(|sample| sample.pod(&self.pod.metadata.uid))
    }
}

#[test]
fn messages_and_annotations_round_trip() {
    let mut count = 0;
    for recording in &recordings() {
        for eviction in evictions(recording) {
            let message: EvictionMessage = eviction.event.message.parse().unwrap();
            assert_eq!(message.to_string(), eviction.event.message, "{}", recording.name);
            let annotations = Annotations::from_map(&eviction.event.annotations).unwrap();
            let printed = annotations.as_ref().map(Annotations::to_map).unwrap_or_default();
            assert_eq!(printed, eviction.event.annotations, "{}", recording.name);
            count += 1;
        }
    }
    let minimum = if external_folder().is_none() { 50 } else { 1 };
    assert!(count >= minimum, "only {count} events");
}

#[test]
fn no_invariant_is_violated() {
    let mut proven = BTreeMap::new();
    for recording in &recordings() {
        for eviction in evictions(recording) {
            for finding in eviction.check() {
                assert_ne!(finding.outcome, InvariantOutcome::Violated, "{}: {finding:#?}", recording.name);
                let count: &mut (usize, usize) = proven.entry(finding.invariant.as_str()).or_default();
                count.0 += usize::from(finding.outcome == InvariantOutcome::Holds);
                count.1 += 1;
            }
        }
    }
    if external_folder().is_some() {
        return;
    }
    // Every invariant is exercised. Up to a fifth of the findings that depend on samples may stay
    // unproven: samples are sparse.
    let all = [
        Invariant::MessageIsKnown,
        Invariant::StatusRepeatsAnEvent,
        Invariant::ConditionRepeatsTheStatus,
        Invariant::AnnotationsMatchTheMessage,
        Invariant::OffendersAreCandidates,
        Invariant::UsageExceedsRequest,
        Invariant::RequestMatchesSpec,
        Invariant::OffendersAreComplete,
        Invariant::PodSentenceFollowsTheVersion,
        Invariant::AvailableIsBelowTheThreshold,
        Invariant::ThresholdIsConfigured,
        Invariant::UsageIsInTheSummary,
        Invariant::AmountsAreCanonical,
        Invariant::LimitMatchesSpec,
        Invariant::NoPressureNoAnnotations,
        Invariant::KillIsAwaited,
    ];
    for invariant in all {
        let (held, checked) = proven.get(invariant.as_str()).copied().unwrap_or_default();
        let unproven = match invariant {
            Invariant::UsageIsInTheSummary | Invariant::OffendersAreComplete => checked / 5,
            _ => 0,
        };
        assert!(checked > 0 && held + unproven >= checked, "{invariant}: holds {held} times of {checked}");
    }
}

/// The recorded events whose usages no single sample shows, because two samples a second miss some
/// values that the kubelet saw. All other messages are composed from an unmodified sample.
const USAGES_BETWEEN_SAMPLES: [&str; 6] = [
    "v1.32.13 init-stress",
    "v1.32.13 regular",
    "v1.36.2 init-stress",
    "v1.36.2 regular",
    "v1.36.2 sidecars",
    "v1.36.2 sidecars",
];

#[test]
fn messages_are_composed_again_from_pod_and_sample() {
    let (mut between, mut count) = (vec![], 0);
    for recording in &recordings() {
        for eviction in evictions(recording) {
            let message: EvictionMessage = eviction.event.message.parse().unwrap();
            let expected = Some((eviction.event.message.clone(), eviction.event.annotations.clone()));
            count += 1;
            if eviction.samples().any(|stats| eviction.compose(&message, stats) == expected) {
                continue;
            }
            between.push(recording.name.clone());
            // With the usages of the message in place of the sample's.
            let composed = eviction.samples().find_map(|stats| {
                let composed = eviction.compose(&message, &with_usages(stats, &message));
                (composed == expected).then_some(composed)
            });
            assert_eq!(composed.flatten(), expected, "{}", recording.name);
        }
    }
    if external_folder().is_none() {
        assert_eq!(between, USAGES_BETWEEN_SAMPLES, "of {count} events");
    }
}

/// Replaces the usages in a sample by those of the message. Containers that are not named do not
/// have a usage.
fn with_usages(stats: &PodStats, message: &EvictionMessage) -> PodStats {
    let EvictionMessage::NodePressure(message) = message else { return stats.clone() };
    let mut stats = stats.clone();
    for container in &mut stats.containers {
        let offender = message.containers.iter().find(|offender| offender.name == container.name);
        let usage = offender.map(|offender| offender.usage.value());
        match message.resource {
            Resource::Memory => {
                container.memory = Some(MemoryStats { working_set_bytes: usage, ..MemoryStats::default() });
            }
            _ => {
                container.logs = Some(FsStats { used_bytes: Some(0), ..FsStats::default() });
                container.rootfs = Some(FsStats { used_bytes: usage, ..FsStats::default() });
            }
        }
    }
    if let Some(pod) = &message.pod {
        stats.memory =
            Some(MemoryStats { working_set_bytes: Some(pod.usage.value()), ..MemoryStats::default() });
    }
    stats
}
