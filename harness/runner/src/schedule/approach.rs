//! From what a borrowed node has to a threshold of its own: how much a case would take, and whether it may.

use std::time::Duration;

use evictlab_rules::pod::NodeStats;
use evictlab_rules::threshold::{Observation, Signal, Threshold, ThresholdConfig, parse_config};
use serde::Deserialize;
use serde_json::Value;

use crate::case::{self, Cgroup, Pressure};
use crate::cluster::Spared;
use crate::stage::{Way, way};

const MIB: u64 = 1024 * 1024;

/// Why a case is not run on a borrowed node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuited {
    /// Its host has other control groups.
    #[error("it holds for cgroup {}", .0.as_str())]
    Cgroup(Cgroup),
    /// The node must not be starved.
    #[error(transparent)]
    Spared(#[from] Spared),
    /// The kubelet would have to be configured otherwise.
    #[error("it needs to change the kubelet's configuration, which is not done on an existing cluster: {0}")]
    Configuration(String),
    /// It does something to the node.
    #[error("it changes the node ({0}), which is not done on an existing cluster")]
    ChangesNode(String),
    /// The node does not admit its pods.
    #[error("its pods ask for {}Mi of memory, and the node has {}Mi to give (`allocatable`)", .asks / MIB, .has / MIB)]
    NoRoom {
        /// What the pods request together, in bytes.
        asks: u64,
        /// What the node's pods may request together, in bytes.
        has: u64,
    },
    /// The scheduler keeps off the node.
    #[error("it leaves its pods to the scheduler, and the node is cordoned")]
    Cordoned,
    /// It makes what lies in no namespace.
    #[error(
        "it makes priority classes, which are the whole cluster's: in an existing one nothing is made but namespaces"
    )]
    ClusterWide,
    /// It asks for what the API server does not tell.
    #[error("it reads the kubelet's log, which cannot be had from an existing cluster")]
    NoLog,
    /// The node cannot have an image.
    #[error("the node has no image {image} and cannot pull it: {why}")]
    NoImage {
        /// The image.
        image: String,
        /// What its kubelet says.
        why: String,
    },
    /// It starves the node of what is counted one by one.
    #[error("it starves a node of {0}, which is not done on an existing cluster: no cap in bytes bounds it")]
    NotBytes(&'static str),
    /// What it starves the node of is others', too.
    #[error("it starves a node of {signal}, which this one shares with {}, for they have one kernel: no case may starve that", .beside.join(", "))]
    Shared {
        /// The signal.
        signal: &'static str,
        /// The other nodes.
        beside: Vec<String>,
    },
    /// The node has no such threshold.
    #[error("the node has no {kind} threshold on {signal}, and its kubelet is not reconfigured")]
    NoThreshold {
        /// The signal.
        signal: &'static str,
        /// `hard` or `soft`.
        kind: &'static str,
    },
    /// A threshold of the other kind is met before.
    #[error(
        "{signal} falls under the node's {first} threshold of {before}Mi before the {then} one of {after}Mi that the case is about"
    )]
    OtherFirst {
        /// The signal.
        signal: &'static str,
        /// The kind of the threshold that is met first.
        first: &'static str,
        /// It, in MiB.
        before: u64,
        /// The kind that the case is about.
        then: &'static str,
        /// It, in MiB.
        after: u64,
    },
    /// The Summary does not tell the signal.
    #[error("the node's statistics have no {0}")]
    NoStatistics(&'static str),
    /// The threshold is met, or too near for a case to tell its own pressure from what is there.
    #[error(
        "{signal} is {available}Mi, the node's threshold {threshold}Mi: the case needs {needs}Mi between them"
    )]
    TooNear {
        /// The signal.
        signal: &'static str,
        /// What there is, in MiB.
        available: u64,
        /// The threshold, in MiB.
        threshold: u64,
        /// What the case needs, in MiB.
        needs: u64,
    },
    /// It would take more than was allowed.
    #[error(
        "{signal} is {available}Mi, the node's threshold {threshold}Mi: the case would take {takes}Mi, more than the cap of {cap}Mi (--pressure-cap)"
    )]
    OverCap {
        /// The signal.
        signal: &'static str,
        /// What there is, in MiB.
        available: u64,
        /// The threshold, in MiB.
        threshold: u64,
        /// What the case takes, in MiB.
        takes: u64,
        /// The cap, in MiB.
        cap: u64,
    },
}

/// How a case comes to a threshold of the node's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approach {
    /// What there is, in bytes.
    pub available: u64,
    /// The threshold, in bytes.
    pub threshold: u64,
    /// The grace of a soft threshold.
    pub grace: Option<Duration>,
    /// What the hog takes.
    pub way: Way,
}

/// One threshold and what is left until it is met.
#[derive(Clone, Copy)]
struct Mark {
    available: u64,
    threshold: u64,
    grace: Option<Duration>,
}

impl Mark {
    /// What has to be taken until it is met; 0 where it is met.
    fn distance(&self) -> u64 {
        self.available.saturating_sub(self.threshold)
    }
}

/// The way to the threshold that the case is about, by the kubelet's `configz` and a Summary. A hard threshold on memory is met by what all pods
/// use, too, of what the node lets them have; where file systems are one, each threshold on it counts.
pub fn approach(
    pressure: &Pressure,
    configz: &Value,
    summary: &Value,
    cap: u64,
) -> Result<Approach, Unsuited> {
    let signal = pressure.signal.as_str();
    if !pressure.signal.is_bytes() {
        return Err(Unsuited::NotBytes(signal));
    }
    let is_soft = pressure.soft_grace.is_some();
    let marks = marks(pressure.signal, configz, summary)?;
    let nearest = |soft: bool| {
        let of_kind = marks.iter().copied().filter(|mark| mark.grace.is_some() == soft);
        of_kind.min_by_key(Mark::distance)
    };
    let [kind, other_kind] = if is_soft { ["soft", "hard"] } else { ["hard", "soft"] };
    let wanted = nearest(is_soft).ok_or(Unsuited::NoThreshold { signal, kind })?;
    let other = nearest(!is_soft);
    if let Some(other) = other.filter(|other| other.distance() <= wanted.distance()) {
        return Err(Unsuited::OtherFirst {
            signal,
            first: other_kind,
            before: other.threshold / MIB,
            then: kind,
            after: wanted.threshold / MIB,
        });
    }
    let (available, threshold) = (wanted.available, wanted.threshold);
    let asked = way(pressure);
    if wanted.distance() < asked.distance {
        let (available, threshold, needs) = (available / MIB, threshold / MIB, asked.distance / MIB);
        return Err(Unsuited::TooNear { signal, available, threshold, needs });
    }
    // What is beyond a hard threshold is all that the node has left.
    let room =
        if is_soft { other.map(|other| other.distance() - wanted.distance()) } else { Some(threshold) };
    let beyond = asked.beyond.min(room.unwrap_or(u64::MAX) / 2);
    let way = Way { distance: wanted.distance(), beyond, unit: asked.unit, others: asked.others };
    let takes = way.distance + way.beyond;
    if takes > cap {
        let [available, threshold, takes, cap] = [available, threshold, takes, cap].map(|bytes| bytes / MIB);
        return Err(Unsuited::OverCap { signal, available, threshold, takes, cap });
    }
    Ok(Approach { available, threshold, grace: wanted.grace, way })
}

/// The threshold that a case is about, in bytes: what is in force of it, by `configz` and a sample or Summary.
pub fn threshold(pressure: &Pressure, configz: &Value, summary: &Value) -> Option<u64> {
    let soft = pressure.soft_grace.is_some();
    let marks = marks(pressure.signal, configz, summary).ok()?;
    let of_kind = marks.iter().filter(|mark| mark.grace.is_some() == soft);
    of_kind.min_by_key(|mark| mark.distance()).map(|mark| mark.threshold)
}

fn marks(signal: case::Signal, configz: &Value, summary: &Value) -> Result<Vec<Mark>, Unsuited> {
    let node = NodeStats::deserialize(&summary["node"]).unwrap_or_default();
    let own = match signal {
        case::Signal::MemoryAvailable => Signal::MemoryAvailable,
        case::Signal::NodefsAvailable => Signal::NodefsAvailable,
        case::Signal::NodefsInodesFree => Signal::NodefsInodesFree,
        case::Signal::PidAvailable => Signal::PidAvailable,
    };
    let stated = Observation::of(own, &node).ok_or(Unsuited::NoStatistics(signal.as_str()))?;
    let related = match own {
        Signal::MemoryAvailable => Observation::of(Signal::AllocatableMemoryAvailable, &node),
        Signal::NodefsAvailable => Observation::of(Signal::ImagefsAvailable, &node)
            .filter(|images| images.capacity == stated.capacity),
        _ => None,
    };
    let observations: Vec<Observation> = [Some(stated), related].into_iter().flatten().collect();
    let config = ThresholdConfig::deserialize(configz).unwrap_or_default();
    // A kubelet does not start with thresholds that it cannot read.
    let thresholds = parse_config(&config).unwrap_or_default();
    let mark = |threshold: &Threshold| {
        let of = observations.iter().find(|observation| observation.signal == threshold.signal)?;
        let bytes = |value: i64| u64::try_from(value).unwrap_or(0);
        let amount = threshold.amount.of(of.capacity.as_ref())?;
        Some(Mark {
            available: bytes(of.available.value()),
            threshold: bytes(amount.value()),
            grace: threshold.grace,
        })
    };
    Ok(thresholds.iter().filter_map(mark).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A node of `available` MiB of 8000, whose pods may have `pods` MiB more, with 3000 of 10000 MiB of disk.
    fn summary(available: u64, pods: u64) -> Value {
        let memory = |available: u64, total: u64| json!({"availableBytes": available * MIB, "workingSetBytes": (total - available) * MIB});
        let fs = json!({"availableBytes": 3000 * MIB, "capacityBytes": 10_000 * MIB});
        json!({"node": {
            "memory": memory(available, 8000),
            "fs": fs,
            "runtime": {"imageFs": fs},
            "systemContainers": [{"name": "pods", "memory": memory(pods, 8000)}],
        }})
    }

    fn tried(pressure: &str, configz: &Value, summary: &Value, cap: u64) -> Result<(u64, u64), String> {
        let pressure: Pressure = serde_yaml::from_str(pressure).unwrap();
        let done = approach(&pressure, configz, summary, cap * MIB).map_err(|error| error.to_string());
        done.map(|approach| (approach.way.distance / MIB, approach.way.beyond / MIB))
    }

    #[test]
    fn the_way_goes_to_the_nodes_own_threshold() {
        let hard = |text: &str| json!({"evictionHard": {"memory.available": text}});
        let soft = json!({"evictionHard": {"memory.available": "100Mi"}, "evictionSoft": {"memory.available": "500Mi"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"}});
        let memory = "signal: memory.available";
        let in_time = "{signal: memory.available, soft-grace: 3s}";
        let disk = "signal: nodefs.available";
        let plenty = summary(1000, 8000);
        let rows = [
            (memory, hard("600Mi"), &plenty, Ok((400, 96))),
            (memory, hard("100Mi"), &plenty, Ok((900, 50))),
            (memory, hard("6.25%"), &plenty, Ok((500, 96))),
            (memory, hard("100Mi"), &summary(1000, 700), Ok((600, 50))),
            (in_time, soft.clone(), &plenty, Ok((500, 96))),
            (
                memory,
                hard("700Mi"),
                &plenty,
                Err(
                    "memory.available is 1000Mi, the node's threshold 700Mi: the case needs 320Mi between them",
                ),
            ),
            (
                memory,
                hard("1100Mi"),
                &plenty,
                Err("memory.available is 1000Mi, the node's threshold 1100Mi: the case needs 320Mi"),
            ),
            (
                memory,
                hard("100Mi"),
                &summary(7000, 8000),
                Err(
                    "memory.available is 7000Mi, the node's threshold 100Mi: the case would take 6950Mi, more than the cap of 2048Mi (--pressure-cap)",
                ),
            ),
            (
                memory,
                json!({"evictionHard": {"nodefs.available": "5%"}}),
                &plenty,
                Err("the node has no hard threshold on memory.available"),
            ),
            (memory, hard("0%"), &plenty, Err("no hard threshold")),
            (in_time, hard("100Mi"), &plenty, Err("no soft threshold on memory.available")),
            (
                memory,
                soft.clone(),
                &plenty,
                Err("under the node's soft threshold of 500Mi before the hard one of 100Mi"),
            ),
            (
                memory,
                hard("100Mi"),
                &json!({"node": {}}),
                Err("the node's statistics have no memory.available"),
            ),
            (
                disk,
                json!({"evictionHard": {"nodefs.available": "12.5%"}}),
                &plenty,
                Err("would take 2375Mi, more than the cap"),
            ),
            (
                disk,
                json!({"evictionHard": {"nodefs.available": "12.5%", "imagefs.available": "21.875%"}}),
                &plenty,
                Ok((812, 1093)),
            ),
        ];
        for (pressure, configz, summary, expected) in rows {
            let got = tried(pressure, &configz, summary, 2048);
            match (&got, expected) {
                (Ok(got), Ok(expected)) => assert_eq!(*got, expected, "{pressure} {configz}"),
                (Err(error), Err(says)) => assert!(error.contains(says), "{error}"),
                _ => panic!("{pressure} {configz}: {got:?} and not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_soft_thresholds_grace_is_the_nodes_own() {
        let configz = json!({"evictionSoft": {"memory.available": "500Mi"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"}});
        let pressure: Pressure = serde_yaml::from_str("{signal: memory.available, soft-grace: 3s}").unwrap();
        let approach = approach(&pressure, &configz, &summary(1000, 8000), 2048 * MIB).unwrap();
        assert_eq!(approach.grace, Some(Duration::from_secs(90)));
        assert_eq!(threshold(&pressure, &configz, &summary(1000, 8000)), Some(500 * MIB));
    }
}
