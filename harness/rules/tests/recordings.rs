//! Every Evicted event that real kubelets made: read, held against the invariants, and written again.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::{EvictedEvent, Evidence, Finding, Invariant, Outcome, check, evicted_events};
use evictlab_rules::message::{
    Annotations, EvictionMessage, NodePressure, ThresholdClause, local_storage_eviction, pressure_eviction,
};
use evictlab_rules::pod::{ContainerStats, FsStats, MemoryStats, Pod, PodStats, Sample};
use evictlab_rules::threshold::{Resource, Threshold, ThresholdConfig, parse_config};
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

/// One event with everything around it.
struct Seen<'a> {
    recording: &'a Recording,
    pod: Pod,
    status: Option<String>,
    condition: Option<String>,
    event: EvictedEvent,
    events: Vec<EvictedEvent>,
}

/// Another folder of recordings, where one was given: what it holds is not known beforehand.
fn given() -> Option<PathBuf> {
    env::var_os("EVICTLAB_RECORDINGS").map(PathBuf::from)
}

fn recordings() -> Vec<Recording> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let folder = given().unwrap_or(own);
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

fn evictions(recording: &Recording) -> Vec<Seen<'_>> {
    let all = evicted_events(&recording.events);
    all.iter()
        .map(|event| {
            let is_its = |pod: &&Value| pod["metadata"]["uid"] == *event.uid;
            let pod = recording.pods_final.iter().find(is_its).unwrap();
            let status = &pod["status"];
            let conditions = status["conditions"].as_array().unwrap();
            let condition = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget");
            Seen {
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

impl Seen<'_> {
    fn thresholds(&self) -> Vec<Threshold> {
        parse_config(&self.recording.kubelet_config_overrides).unwrap()
    }

    fn check(&self) -> Vec<Finding> {
        check(&Evidence {
            version: &self.recording.kubelet_version,
            pod: &self.pod,
            event: &self.event,
            events: &self.events,
            status: self.status.as_deref(),
            condition: self.condition.as_deref(),
            thresholds: &self.thresholds(),
            samples: &self.recording.samples,
        })
    }

    /// What the kubelet would say, going by these stats, in the order that it happened to have.
    fn write(
        &self,
        message: &EvictionMessage,
        stats: &PodStats,
    ) -> Option<(String, BTreeMap<String, String>)> {
        let version = &self.recording.kubelet_version;
        let EvictionMessage::NodePressure(NodePressure { resource, threshold, containers, .. }) = message
        else {
            let written = local_storage_eviction(version, &self.pod, stats, false)?;
            return Some((written.to_string(), BTreeMap::new()));
        };
        let place =
            |container: &ContainerStats| containers.iter().position(|named| named.name == container.name);
        let mut stats = stats.clone();
        stats.containers.sort_by_key(place);
        let available = threshold.clone().unwrap().available;
        let configured =
            self.thresholds().into_iter().find(|threshold| threshold.signal.resource() == *resource);
        // Where it is a soft one, the hard one comes before it.
        let soft =
            self.thresholds().into_iter().find(|t| t.signal.resource() == *resource && t.grace.is_some());
        let quantity = soft.or(configured).unwrap().amount.of(None).unwrap();
        let threshold = Some(ThresholdClause { quantity, available });
        let written = pressure_eviction(version, &self.pod, Some(&stats), *resource, threshold);
        let annotations = written.annotations.as_ref().map(Annotations::write).unwrap_or_default();
        Some((EvictionMessage::NodePressure(written.message).to_string(), annotations))
    }

    fn samples(&self) -> impl Iterator<Item = &PodStats> {
        self.recording.samples.iter().filter_map(|sample| sample.pod(&self.pod.metadata.uid))
    }
}

#[test]
fn every_message_is_read_and_prints_as_it_was() {
    let mut count = 0;
    for recording in &recordings() {
        for seen in evictions(recording) {
            let message: EvictionMessage = seen.event.message.parse().unwrap();
            assert_eq!(message.to_string(), seen.event.message, "{}", recording.name);
            let annotations = Annotations::read(&seen.event.annotations).unwrap();
            let written = annotations.as_ref().map(Annotations::write).unwrap_or_default();
            assert_eq!(written, seen.event.annotations, "{}", recording.name);
            count += 1;
        }
    }
    let least = if given().is_none() { 50 } else { 1 };
    assert!(count >= least, "only {count} events");
}

#[test]
fn no_invariant_is_violated() {
    let mut proven = BTreeMap::new();
    for recording in &recordings() {
        for seen in evictions(recording) {
            for finding in seen.check() {
                assert_ne!(finding.outcome, Outcome::Violated, "{}: {finding:#?}", recording.name);
                let count: &mut (usize, usize) = proven.entry(finding.invariant.as_str()).or_default();
                count.0 += usize::from(finding.outcome == Outcome::Holds);
                count.1 += 1;
            }
        }
    }
    if given().is_some() {
        return;
    }
    // All are exercised, and only those that hang on sparse samples may stay open here and there.
    let all = [
        Invariant::MessageIsKnown,
        Invariant::StatusRepeatsAnEvent,
        Invariant::ConditionRepeatsTheStatus,
        Invariant::AnnotationsMatchTheMessage,
        Invariant::OffendersAreCandidates,
        Invariant::UsageExceedsRequest,
        Invariant::RequestIsThePods,
        Invariant::OffendersAreComplete,
        Invariant::PodSentenceFollowsTheVersion,
        Invariant::AvailableIsBelowTheThreshold,
        Invariant::ThresholdIsConfigured,
        Invariant::UsageIsInTheSummary,
        Invariant::LimitIsThePods,
        Invariant::NoPressureNoAnnotations,
    ];
    for invariant in all {
        let (held, checked) = proven.get(invariant.as_str()).copied().unwrap_or_default();
        let open = match invariant {
            Invariant::UsageIsInTheSummary | Invariant::OffendersAreComplete => checked / 5,
            _ => 0,
        };
        assert!(checked > 0 && held + open >= checked, "{invariant}: holds {held} times of {checked}");
    }
}

/// Polls twice a second miss some of the figures that the kubelet saw. These are the events, in the recordings kept
/// here, whose figures no single sample shows; all others are written from a sample as it is.
const FIGURES_BETWEEN_SAMPLES: [&str; 6] = [
    "v1.32.13 init-stress",
    "v1.32.13 regular",
    "v1.36.2 init-stress",
    "v1.36.2 regular",
    "v1.36.2 sidecars",
    "v1.36.2 sidecars",
];

#[test]
fn every_message_is_written_again_from_its_pod_and_a_sample() {
    let (mut between, mut count) = (vec![], 0);
    for recording in &recordings() {
        for seen in evictions(recording) {
            let message: EvictionMessage = seen.event.message.parse().unwrap();
            let expected = Some((seen.event.message.clone(), seen.event.annotations.clone()));
            count += 1;
            if seen.samples().any(|stats| seen.write(&message, stats) == expected) {
                continue;
            }
            between.push(recording.name.clone());
            // With the message's own figures in the sample that is nearest.
            let written = seen.samples().find_map(|stats| {
                let written = seen.write(&message, &with_figures(stats, &message));
                (written == expected).then_some(written)
            });
            assert_eq!(written.flatten(), expected, "{}", recording.name);
        }
    }
    if given().is_none() {
        assert_eq!(between, FIGURES_BETWEEN_SAMPLES, "of {count} events");
    }
}

/// A sample with the message's usages in place of its own; who is not named has none.
fn with_figures(stats: &PodStats, message: &EvictionMessage) -> PodStats {
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
