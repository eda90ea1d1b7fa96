//! Timelines from the evidence of a case.

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::message::{EVICTED_REASON, EvictionKind, EvictionMessage, STARVED_RESOURCE_KEY};
use evictlab_rules::summary::{PodStats, Sample};
use evictlab_rules::threshold::{Observation, Resource, Signal, Threshold};
use serde::Deserialize;

use super::model::{ConditionPeriod, EventMark, Point, ThresholdLine, Timeline, TimelineSeries};
use super::unit::Unit;
use evictlab_evidence::{NodeHistoryEntry, Observations, PodHistoryEntry, Recorded};

/// Maximum number of samples in a timeline, for small files.
const MAX_SAMPLES: usize = 240;

/// A sample with a time.
#[derive(Deserialize)]
struct Timed {
    #[expect(dead_code, reason = "only whether there is one matters")]
    t: f64,
}

impl Timeline {
    /// Reads the timeline of a case; `None` if the evidence contains no samples.
    pub(crate) fn from_observations(observations: &Observations) -> Option<Self> {
        let samples = observations.samples.texts().zip(observations.samples.decode());
        let samples = samples.filter(|(text, _)| serde_json::from_str::<Timed>(text).is_ok());
        let samples: Vec<Sample> = samples.filter_map(|(_, sample)| sample.ok()).collect();
        let step = samples.len().div_ceil(MAX_SAMPLES).max(1);
        let mut samples: Vec<Sample> = samples.into_iter().rev().step_by(step).collect();
        samples.reverse();
        let last = samples.last()?.t;
        let signal = signal(observations);
        let resource = signal.map_or(Resource::EphemeralStorage, Signal::resource);
        let unit = match resource {
            Resource::Memory | Resource::EphemeralStorage => Unit::Bytes,
            Resource::Inodes | Resource::Pids => Unit::Count,
        };
        let observed: Vec<(f64, Observation)> = samples
            .iter()
            .filter_map(|sample| Some((sample.t, Observation::from_node_stats(signal?, &sample.node)?)))
            .collect();
        let thresholds = observed.first().map_or_else(Vec::new, |(_, first)| thresholds(observations, first));
        let available = observed
            .iter()
            .map(|(t, observation)| Point { t: *t, value: observation.available.value() as f64 })
            .collect();
        let (conditions, last_change) = conditions(&observations.node_history, last);
        let marks = marks(observations);
        let end = marks.iter().map(|mark| mark.t).fold(last.max(last_change), f64::max);
        let used = used(&samples, resource);
        Some(Self { signal, unit, available, thresholds, used, conditions, marks, end })
    }
}

/// The thresholds of the observed signal, in absolute amounts.
fn thresholds(observations: &Observations, observed: &Observation) -> Vec<ThresholdLine> {
    let line = |threshold: Threshold| {
        let value = threshold.value.resolve(observed.capacity.as_ref())?.value() as f64;
        let name = match threshold.grace {
            Some(grace) => format!("soft threshold, grace {}", humantime::format_duration(grace)),
            None => "threshold".to_owned(),
        };
        Some(ThresholdLine { name, value })
    };
    let all = observations.thresholds().into_iter();
    all.filter(|threshold| threshold.signal == observed.signal).filter_map(line).collect()
}

/// The signal of the eviction: of the resource that the Evicted event names, else the configured
/// one. `None` for a pod over its own limits, which is not node-pressure eviction.
fn signal(observations: &Observations) -> Option<Signal> {
    let events = &observations.events;
    let starved =
        events.iter().find_map(|event| Resource::from_name(event.annotation(STARVED_RESOURCE_KEY)?));
    let configured = ["evictionSoft", "evictionHard"].into_iter().find_map(|kind| {
        let thresholds = observations.kubelet_config_overrides.get(kind)?.as_object()?;
        thresholds.keys().find_map(|signal| signal.parse::<Signal>().ok())
    });
    match starved {
        Some(resource) => {
            configured.filter(|signal| signal.resource() == resource).or(Some(match resource {
                Resource::Memory => Signal::MemoryAvailable,
                Resource::EphemeralStorage => Signal::NodefsAvailable,
                Resource::Inodes => Signal::NodefsInodesFree,
                Resource::Pids => Signal::PidAvailable,
            }))
        }
        None if configured.is_some() => configured,
        None => {
            let is_over_limit = events.iter().any(|event| {
                event.reason() == EVICTED_REASON
                    && eviction_kind(event.message()).is_some_and(EvictionKind::is_limit)
            });
            (!is_over_limit).then_some(Signal::MemoryAvailable)
        }
    }
}

/// The kind of an eviction; `None` for a text that is not an eviction message.
fn eviction_kind(message: &str) -> Option<EvictionKind> {
    message.parse().ok().map(|message: EvictionMessage| message.kind())
}

/// The usage of a resource, by container or pod.
fn used(samples: &[Sample], resource: Resource) -> Vec<TimelineSeries> {
    let mut all: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for sample in samples {
        for (name, value) in sample.pods.iter().flat_map(|pod| pod_usage(pod, resource)) {
            all.entry(name).or_default().push(Point { t: sample.t, value: value as f64 });
        }
    }
    all.into_iter().map(|(name, points)| TimelineSeries { name, points }).collect()
}

/// Names and usages: `pod/container` for memory, `pod` for other resources, for which the kubelet
/// has no container statistics.
fn pod_usage(pod: &PodStats, resource: Resource) -> Vec<(String, i64)> {
    let name = &pod.pod_ref.name;
    let storage = pod.ephemeral_storage.as_ref();
    let value = match resource {
        Resource::Memory => {
            let usage = |container: &evictlab_rules::summary::ContainerStats| {
                let bytes = container.memory.as_ref()?.working_set_bytes?;
                Some((format!("{name}/{}", container.name), bytes))
            };
            return pod.containers.iter().filter_map(usage).collect();
        }
        Resource::EphemeralStorage => storage.and_then(|storage| storage.used_bytes),
        Resource::Inodes => storage.and_then(|storage| storage.inodes_used),
        Resource::Pids => pod.process_stats.as_ref().and_then(|stats| stats.process_count),
    };
    value.map(|value| (name.clone(), value)).into_iter().collect()
}

/// Periods in which node conditions were true, or `Ready` was not, and the time of the last change.
fn conditions(history: &[Recorded<NodeHistoryEntry>], last_sample: f64) -> (Vec<ConditionPeriod>, f64) {
    let mut periods: Vec<ConditionPeriod> = Vec::new();
    let mut since: BTreeMap<String, f64> = BTreeMap::new();
    let mut changed = 0.0;
    for entry in history {
        for (name, condition) in &entry.conditions {
            let is_true = condition.status.as_deref() == Some("True");
            let shown = if *name == "Ready" { !is_true } else { is_true };
            match (shown, since.get(name).copied()) {
                (true, None) => {
                    since.insert(name.clone(), entry.t);
                    changed = entry.t;
                }
                (false, Some(from)) => {
                    since.remove(name);
                    periods.push(ConditionPeriod { name: label(name), from, to: entry.t });
                    changed = entry.t;
                }
                _ => {}
            }
        }
    }
    let to = last_sample.max(changed);
    periods.extend(since.into_iter().map(|(name, from)| ConditionPeriod { name: label(&name), from, to }));
    periods.retain(|period| period.to > period.from);
    (periods, changed)
}

fn label(condition: &str) -> String {
    if condition == "Ready" { "not ready".to_owned() } else { condition.to_owned() }
}

/// The first start, eviction or rejection, deletion and OOM kills of each pod.
fn marks(observations: &Observations) -> Vec<EventMark> {
    let pods = &observations.pod_history;
    let mut marks: Vec<EventMark> =
        pods.iter().flat_map(|(pod, entries)| pod_marks(observations, pod, entries)).collect();
    if pods.is_empty() {
        marks.extend(observations.seconds_to_outcome.map(|t| EventMark { t, text: "evicted".to_owned() }));
    }
    marks.sort_by(|one, other| one.t.total_cmp(&other.t));
    marks
}

fn pod_marks(
    observations: &Observations,
    pod: &str,
    entries: &[Recorded<PodHistoryEntry>],
) -> Vec<EventMark> {
    let mut marks = Vec::new();
    let first = |text: String, is: &dyn Fn(&PodHistoryEntry) -> bool| {
        entries.iter().find(|entry| is(entry)).map(|entry| EventMark { t: entry.t, text })
    };
    let running =
        |entry: &PodHistoryEntry| entry.containers.values().any(|container| container.state == "running");
    let evicted = |entry: &PodHistoryEntry| entry.reason.as_deref() == Some(EVICTED_REASON);
    let end = entries.iter().find(|entry| evicted(entry));
    let is_rejected = end.is_some_and(|end| is_rejection(observations, pod, end));
    marks.extend(first(format!("{pod} running"), &running));
    marks.extend(first(format!("{pod} {}", if is_rejected { "rejected" } else { "evicted" }), &evicted));
    marks.extend(first(format!("{pod} deleted"), &|entry| entry.gone));
    let names: BTreeSet<&String> = entries.iter().flat_map(|entry| entry.containers.keys()).collect();
    for name in names {
        marks.extend(first(format!("{pod}/{name} OOM-killed"), &|entry| {
            let container = entry.containers.get(name);
            container.is_some_and(|container| container.reason.as_deref() == Some("OOMKilled"))
        }));
    }
    marks
}

/// Returns whether a pod was rejected by its node at admission, by its message. The status of a
/// rejected pod has the reason `Evicted`, too, but no containers (`rejectPod`,
/// pkg/kubelet/kubelet.go); a history does not contain messages.
fn is_rejection(observations: &Observations, pod: &str, end: &PodHistoryEntry) -> bool {
    let last = observations.pods_final.iter().find(|last| last.metadata.name.as_deref() == Some(pod));
    match last.and_then(|last| eviction_kind(last.message()?)) {
        Some(kind) => kind == EvictionKind::Rejected,
        None => end.containers.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures::decoded;

    const MI: u64 = evictlab_rules::quantity::MIB;

    fn seen() -> Observations {
        let sample = |t: f64, available: u64, used: u64| {
            json!({
                "t": t,
                "node": {"memory": {"availableBytes": available * MI, "workingSetBytes": 1000 * MI}},
                "pods": [
                    {"podRef": {"name": "hog"}, "containers": [{"name": "el1", "memory": {"workingSetBytes": used * MI}}]},
                    {"podRef": {"name": "etcd"}, "memory": {"workingSetBytes": 50 * MI}},
                ],
            })
        };
        let object = |value: Value| value.as_object().cloned().unwrap();
        let pressure = |t: f64, status: &str| json!({"t": t, "conditions": {"MemoryPressure": {"status": status}, "Ready": {"status": "True"}}});
        let pods = [
            json!({"t": 0.1, "phase": "Pending", "containers": {}}),
            json!({"t": 0.4, "phase": "RunningCase", "containers": {"el1": {"state": "running"}}}),
            json!({"t": 3.0, "phase": "Failed", "reason": "Evicted", "containers": {"el1": {"state": "terminated", "reason": "OOMKilled"}}}),
        ];
        Observations {
            kubelet_config_overrides: object(json!({"evictionHard": {"memory.available": "300Mi"}})),
            samples: [sample(0.5, 800, 10), sample(1.5, 500, 310), sample(2.5, 250, 560)].iter().collect(),
            events: vec![decoded(json!({"reason": "Evicted", "type": "Warning",
                "metadata": {"annotations": {"starved_resource": "memory"}}}))],
            pod_history: BTreeMap::from([("hog".to_owned(), pods.map(decoded).to_vec())]),
            node_history: [pressure(0.0, "False"), pressure(2.75, "True"), pressure(9.0, "False")]
                .map(decoded)
                .to_vec(),
            ..Observations::default()
        }
    }

    #[test]
    fn reads_a_timeline() {
        let timeline = Timeline::from_observations(&seen()).unwrap();
        let figures = |points: &[Point]| {
            points.iter().map(|point| (point.t, point.value as u64 / MI)).collect::<Vec<_>>()
        };
        assert_eq!(timeline.signal, Some(Signal::MemoryAvailable));
        assert_eq!(figures(&timeline.available), [(0.5, 800), (1.5, 500), (2.5, 250)]);
        assert_eq!(
            timeline.thresholds,
            [ThresholdLine { name: "threshold".to_owned(), value: (300 * MI) as f64 }]
        );
        assert_eq!(timeline.used.len(), 1, "system pods are excluded: {:?}", timeline.used);
        assert_eq!(timeline.used[0].name, "hog/el1");
        assert_eq!(figures(&timeline.used[0].points), [(0.5, 10), (1.5, 310), (2.5, 560)]);
        let period = ConditionPeriod { name: "MemoryPressure".to_owned(), from: 2.75, to: 9.0 };
        assert_eq!(timeline.conditions, [period]);
        let marks: Vec<_> = timeline.marks.iter().map(|mark| (mark.t, mark.text.as_str())).collect();
        assert_eq!(marks, [(0.4, "hog running"), (3.0, "hog evicted"), (3.0, "hog/el1 OOM-killed")]);
        assert_eq!(timeline.end, 9.0);
    }

    /// The status of both has the reason `Evicted`.
    #[test]
    fn a_pod_rejected_at_admission_is_not_evicted() {
        let rejection = "Pod was rejected: The node had condition: [MemoryPressure]. ";
        let eviction = "The node was low on resource: memory. ";
        let containers = json!({"el1": {"state": "waiting"}});
        for (message, containers, expected) in [
            (Some(rejection), json!({}), "p rejected"),
            (Some(eviction), json!({}), "p evicted"),
            (Some(eviction), containers.clone(), "p evicted"),
            // The pod was deleted before the end.
            (None, json!({}), "p rejected"),
            (None, containers, "p evicted"),
        ] {
            let entry = json!({"t": 1.0, "phase": "Failed", "reason": "Evicted", "containers": containers});
            let last =
                message.map(|message| json!({"metadata": {"name": "p"}, "status": {"message": message}}));
            let observations = Observations {
                pod_history: BTreeMap::from([("p".to_owned(), vec![decoded(entry)])]),
                pods_final: last.into_iter().map(decoded).collect(),
                ..Observations::default()
            };
            let marks = marks(&observations);
            assert_eq!(marks, [EventMark { t: 1.0, text: expected.to_owned() }], "{message:?}");
        }
    }

    #[test]
    fn thresholds_have_absolute_values_and_grace_periods() {
        let configz = decoded(json!({
            "evictionHard": {"memory.available": "10%", "nodefs.available": "5%"},
            "evictionSoft": {"memory.available": "300Mi"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        }));
        let timeline = Timeline::from_observations(&Observations { configz, ..seen() }).unwrap();
        let bounds: Vec<_> =
            timeline.thresholds.iter().map(|bound| (bound.name.as_str(), bound.value as u64 / MI)).collect();
        // The capacity is available plus used: 1800Mi.
        assert_eq!(bounds, [("threshold", 180), ("soft threshold, grace 1m 30s", 300)]);
    }

    #[test]
    fn pod_over_its_limits_has_no_signal() {
        let evicted =
            |message: &str| decoded(json!({"reason": "Evicted", "type": "Warning", "message": message}));
        let limit = "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ";
        let events = vec![evicted(limit)];
        let pod = json!({"t": 1.0, "node": {}, "pods": [{"podRef": {"name": "writer"}, "containers": [], "ephemeral-storage": {"usedBytes": 40 * MI}}]});
        let seen = Observations {
            kubelet_config_overrides: serde_json::Map::new(),
            events,
            samples: [pod].iter().collect(),
            ..seen()
        };
        let timeline = Timeline::from_observations(&seen).unwrap();
        assert_eq!((timeline.signal, timeline.available.len()), (None, 0));
        assert_eq!(timeline.used[0].points, [Point { t: 1.0, value: (40 * MI) as f64 }]);
        // The rejection of a pod is of node pressure.
        let rejected = vec![evicted("The node had condition: [MemoryPressure]. ")];
        let timeline = Timeline::from_observations(&Observations { events: rejected, ..seen }).unwrap();
        assert_eq!(timeline.signal, Some(Signal::MemoryAvailable));
    }

    #[test]
    fn samples_are_limited_and_required() {
        let sample = |t: u32| json!({"t": t, "node": {"memory": {"availableBytes": 1, "workingSetBytes": 1}}, "pods": []});
        let many: Vec<Value> = (0..1000).map(sample).collect();
        let timeline =
            Timeline::from_observations(&Observations { samples: many.iter().collect(), ..seen() }).unwrap();
        assert!(timeline.available.len() <= MAX_SAMPLES);
        assert_eq!(timeline.available.last().map(|point| point.t), Some(999.0));
        assert_eq!(Timeline::from_observations(&Observations::default()), None);
    }
}
