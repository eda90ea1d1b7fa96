//! The course of a case, from its evidence.

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::pod::NodeStats;
use evictlab_rules::threshold::{Observation, Resource, Signal, Threshold};
use serde::Deserialize;
use serde_json::Value;

use super::unit::Unit;
use super::{Bound, Mark, Point, Series, Span, Timeline};
use crate::observe::Observations;

/// How many moments are drawn at most: more would not be seen, and are much to load.
const MOMENTS: usize = 240;

impl Timeline {
    /// The course of a case; none where nothing was measured.
    pub fn of(seen: &Observations) -> Option<Self> {
        let samples: Vec<Value> = seen.samples.iter().collect();
        let each = samples.len().div_ceil(MOMENTS).max(1);
        let samples: Vec<&Value> = samples.iter().rev().step_by(each).rev().collect();
        let last = samples.last()?["t"].as_f64()?;
        let signal = signal(seen);
        let resource = signal.map_or(Resource::EphemeralStorage, Signal::resource);
        let unit = match resource {
            Resource::Memory | Resource::EphemeralStorage => Unit::Bytes,
            Resource::Inodes | Resource::Pids => Unit::Count,
        };
        let observed: Vec<(f64, Observation)> = samples
            .iter()
            .filter_map(|sample| {
                let node = NodeStats::deserialize(&sample["node"]).ok()?;
                Some((sample["t"].as_f64()?, Observation::of(signal?, &node)?))
            })
            .collect();
        let thresholds = match observed.first() {
            Some((_, first)) => {
                let amount = |threshold: &Threshold| {
                    let value = threshold.amount.of(first.capacity.as_ref())?.value() as f64;
                    let name = match threshold.grace {
                        Some(grace) => format!("soft threshold, grace {}", humantime::format_duration(grace)),
                        None => "threshold".to_owned(),
                    };
                    Some(Bound { name, value })
                };
                let of_it =
                    seen.thresholds().into_iter().filter(|threshold| threshold.signal == first.signal);
                of_it.filter_map(|threshold| amount(&threshold)).collect()
            }
            None => Vec::new(),
        };
        let available =
            observed.iter().map(|(t, seen)| Point { t: *t, value: seen.available.value() as f64 });
        let (conditions, last_change) = conditions(seen, last);
        let marks = marks(seen);
        let end = marks.iter().map(|mark| mark.t).fold(last.max(last_change), f64::max);
        let used = used(&samples, resource);
        Some(Self { signal, unit, available: available.collect(), thresholds, used, conditions, marks, end })
    }
}

/// What ran short: what the kubelet says, else what the node was tuned for. A pod over its own limits leaves the node at peace.
fn signal(seen: &Observations) -> Option<Signal> {
    let starved = seen
        .events
        .iter()
        .find_map(|event| Resource::named(event["metadata"]["annotations"]["starved_resource"].as_str()?));
    let tuned = ["evictionSoft", "evictionHard"].into_iter().find_map(|kind| {
        let of = seen.kubelet_config_overrides.get(kind)?.as_object()?;
        of.keys().find_map(|signal| signal.parse::<Signal>().ok())
    });
    match starved {
        Some(resource) => tuned.filter(|tuned| tuned.resource() == resource).or(Some(match resource {
            Resource::Memory => Signal::MemoryAvailable,
            Resource::EphemeralStorage => Signal::NodefsAvailable,
            Resource::Inodes => Signal::NodefsInodesFree,
            Resource::Pids => Signal::PidAvailable,
        })),
        None if tuned.is_some() => tuned,
        None => {
            let over_limits =
                seen.events.iter().any(|event| event["reason"] == "Evicted" && event["type"] == "Warning");
            (!over_limits).then_some(Signal::MemoryAvailable)
        }
    }
}

fn used(samples: &[&Value], resource: Resource) -> Vec<Series> {
    let mut all: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for sample in samples {
        let Some(t) = sample["t"].as_f64() else { continue };
        // Other pods keep no containers: they are the node's own.
        let pods = sample["pods"].as_array().into_iter().flatten().filter(|pod| pod["containers"].is_array());
        for pod in pods {
            let name = pod["podRef"]["name"].as_str().unwrap_or_default();
            let mut add = |name: String, value: Option<f64>| {
                if let Some(value) = value {
                    all.entry(name).or_default().push(Point { t, value });
                }
            };
            match resource {
                Resource::Memory => {
                    for container in pod["containers"].as_array().into_iter().flatten() {
                        let of = container["name"].as_str().unwrap_or_default();
                        add(format!("{name}/{of}"), container["memory"]["workingSetBytes"].as_f64());
                    }
                }
                Resource::EphemeralStorage => {
                    add(name.to_owned(), pod["ephemeral-storage"]["usedBytes"].as_f64());
                }
                Resource::Inodes => add(name.to_owned(), pod["ephemeral-storage"]["inodesUsed"].as_f64()),
                Resource::Pids => add(name.to_owned(), pod["process_stats"]["process_count"].as_f64()),
            }
        }
    }
    all.into_iter().map(|(name, points)| Series { name, points }).collect()
}

/// When the node's conditions were true, and the last moment at which one changed.
fn conditions(seen: &Observations, last: f64) -> (Vec<Span>, f64) {
    let mut spans: Vec<Span> = Vec::new();
    let mut since: BTreeMap<&str, f64> = BTreeMap::new();
    let mut changed = 0.0;
    for entry in &seen.node_history {
        let Some(t) = entry["t"].as_f64() else { continue };
        for (name, condition) in entry["conditions"].as_object().into_iter().flatten() {
            // `Ready` is told of where it is not true.
            let holds = match name.as_str() {
                "Ready" => condition["status"] != "True",
                _ => condition["status"] == "True",
            };
            match (holds, since.get(name.as_str()).copied()) {
                (true, None) => {
                    since.insert(name, t);
                    changed = t;
                }
                (false, Some(from)) => {
                    since.remove(name.as_str());
                    spans.push(Span { name: shown(name), from, to: t });
                    changed = t;
                }
                _ => {}
            }
        }
    }
    let open = since.into_iter().map(|(name, from)| Span { name: shown(name), from, to: last.max(changed) });
    spans.extend(open);
    spans.retain(|span| span.to > span.from);
    (spans, changed)
}

fn shown(condition: &str) -> String {
    if condition == "Ready" { "not ready".to_owned() } else { condition.to_owned() }
}

/// What became of the pods, once each.
fn marks(seen: &Observations) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (pod, entries) in &seen.pod_history {
        let entries = entries.as_array().map_or(&[][..], Vec::as_slice);
        let first = |text: String, is: &dyn Fn(&Value) -> bool| {
            let entry = entries.iter().find(|entry| is(entry))?;
            Some(Mark { t: entry["t"].as_f64()?, text })
        };
        let runs = |entry: &Value| containers(entry).any(|(_, container)| container["state"] == "running");
        marks.extend(first(format!("{pod} runs"), &runs));
        marks.extend(first(format!("{pod} evicted"), &|entry| entry["reason"] == "Evicted"));
        marks.extend(first(format!("{pod} is gone"), &|entry| entry["gone"] == true));
        let names: BTreeSet<&String> = entries.iter().flat_map(containers).map(|(name, _)| name).collect();
        for name in names {
            marks.extend(first(format!("{pod}/{name} killed for memory"), &|entry| {
                entry["containers"][name.as_str()]["reason"] == "OOMKilled"
            }));
        }
    }
    if seen.pod_history.is_empty() {
        marks.extend(seen.seconds_to_outcome.map(|t| Mark { t, text: "evicted".to_owned() }));
    }
    marks.sort_by(|one, other| one.t.total_cmp(&other.t));
    marks
}

fn containers(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    entry["containers"].as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MI: u64 = 1 << 20;

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
        Observations {
            kubelet_config_overrides: object(json!({"evictionHard": {"memory.available": "300Mi"}})),
            samples: [sample(0.5, 800, 10), sample(1.5, 500, 310), sample(2.5, 250, 560)].iter().collect(),
            events: vec![json!({"reason": "Evicted", "type": "Warning",
                "metadata": {"annotations": {"starved_resource": "memory"}}})],
            pod_history: object(json!({"hog": [
                {"t": 0.1, "phase": "Pending", "containers": {}},
                {"t": 0.4, "phase": "Running", "containers": {"el1": {"state": "running"}}},
                {"t": 3.0, "phase": "Failed", "reason": "Evicted", "containers": {"el1": {"state": "terminated", "reason": "OOMKilled"}}},
            ]})),
            node_history: vec![pressure(0.0, "False"), pressure(2.75, "True"), pressure(9.0, "False")],
            ..Observations::default()
        }
    }

    #[test]
    fn a_course_is_read_from_the_evidence() {
        let timeline = Timeline::of(&seen()).unwrap();
        let figures = |points: &[Point]| {
            points.iter().map(|point| (point.t, point.value as u64 / MI)).collect::<Vec<_>>()
        };
        assert_eq!(timeline.signal, Some(Signal::MemoryAvailable));
        assert_eq!(figures(&timeline.available), [(0.5, 800), (1.5, 500), (2.5, 250)]);
        assert_eq!(timeline.thresholds, [Bound { name: "threshold".to_owned(), value: (300 * MI) as f64 }]);
        assert_eq!(timeline.used.len(), 1, "the node's own pods are none of the case's: {:?}", timeline.used);
        assert_eq!(timeline.used[0].name, "hog/el1");
        assert_eq!(figures(&timeline.used[0].points), [(0.5, 10), (1.5, 310), (2.5, 560)]);
        let span = Span { name: "MemoryPressure".to_owned(), from: 2.75, to: 9.0 };
        assert_eq!(timeline.conditions, [span]);
        let marks: Vec<_> = timeline.marks.iter().map(|mark| (mark.t, mark.text.as_str())).collect();
        assert_eq!(marks, [(0.4, "hog runs"), (3.0, "hog evicted"), (3.0, "hog/el1 killed for memory")]);
        assert_eq!(timeline.end, 9.0);
    }

    #[test]
    fn a_soft_threshold_is_drawn_with_its_grace_and_a_percentage_as_what_it_comes_to() {
        let configz = json!({
            "evictionHard": {"memory.available": "10%", "nodefs.available": "5%"},
            "evictionSoft": {"memory.available": "300Mi"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        });
        let timeline = Timeline::of(&Observations { configz, ..seen() }).unwrap();
        let bounds: Vec<_> =
            timeline.thresholds.iter().map(|bound| (bound.name.as_str(), bound.value as u64 / MI)).collect();
        // The capacity is what is available and what is used: 1800Mi.
        assert_eq!(bounds, [("threshold", 180), ("soft threshold, grace 1m 30s", 300)]);
    }

    #[test]
    fn a_pod_over_its_limits_starves_no_node() {
        let events = vec![
            json!({"reason": "Evicted", "type": "Warning", "message": "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. "}),
        ];
        let pod = json!({"t": 1.0, "node": {}, "pods": [{"podRef": {"name": "writer"}, "containers": [], "ephemeral-storage": {"usedBytes": 40 * MI}}]});
        let seen = Observations {
            kubelet_config_overrides: serde_json::Map::new(),
            events,
            samples: [pod].iter().collect(),
            ..seen()
        };
        let timeline = Timeline::of(&seen).unwrap();
        assert_eq!((timeline.signal, timeline.available.len()), (None, 0));
        assert_eq!(timeline.used[0].points, [Point { t: 1.0, value: (40 * MI) as f64 }]);
    }

    #[test]
    fn long_courses_are_thinned_out_and_nothing_makes_none() {
        let sample = |t: u32| json!({"t": t, "node": {"memory": {"availableBytes": 1}}, "pods": []});
        let many: Vec<Value> = (0..1000).map(sample).collect();
        let timeline = Timeline::of(&Observations { samples: many.iter().collect(), ..seen() }).unwrap();
        assert!(timeline.available.len() <= MOMENTS);
        assert_eq!(timeline.available.last().map(|point| point.t), Some(999.0));
        assert_eq!(Timeline::of(&Observations::default()), None);
    }
}
