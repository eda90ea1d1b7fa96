//! Pressure plans for external nodes: the distance to the node's own threshold, within the cap.
//!
//! The kubelet of an external node is not reconfigured. A case with pressure therefore has to reach
//! a threshold that the node already has.

use std::time::Duration;

use evictlab_case::{self as case, Pressure};
use evictlab_rules::summary::NodeStats;
use evictlab_rules::threshold::{Observation, Signal, Threshold, ThresholdConfig, parse_threshold_config};
use serde::Deserialize;
use serde_json::Value;

use crate::pressure::ramp::{RampTarget, ramp_target};
use crate::pressure::signal_status::node_stats;
use crate::skip_reason::{SkipReason, ThresholdKind};

/// Pressure that crosses a threshold of an external node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PressurePlan {
    /// Available amount, in bytes.
    pub available: u64,
    /// The threshold, in bytes: pressure on other signals is not planned.
    pub threshold: u64,
    /// Grace period of a soft threshold.
    pub grace: Option<Duration>,
    /// Target of the ramp.
    pub target: RampTarget,
}

/// A threshold of the kubelet and the available amount that the kubelet compares with it, in the
/// unit of the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedThreshold {
    pub available: u64,
    pub threshold: u64,
    grace: Option<Duration>,
}

impl ResolvedThreshold {
    fn is_soft(&self) -> bool {
        self.grace.is_some()
    }

    /// Returns the amount to take until the threshold is crossed; 0 if it is crossed already.
    fn distance(&self) -> u64 {
        self.available.saturating_sub(self.threshold)
    }
}

/// Plans the pressure of a case from the kubelet's `configz` and a Summary, with at most `cap`
/// bytes.
///
/// A hard threshold on memory also applies to the `pods` cgroup (node allocatable). If nodefs and
/// imagefs are one file system, thresholds on either apply.
pub(crate) fn plan_pressure(
    pressure: &Pressure,
    configz: &Value,
    summary: &Value,
    cap: u64,
) -> Result<PressurePlan, SkipReason> {
    let signal = pressure.signal;
    if !signal.is_bytes() {
        return Err(SkipReason::NotBytes(signal));
    }
    let is_soft = pressure.soft_grace.is_some();
    let thresholds = resolved_thresholds(signal, configz, &node_stats(summary))?;
    let (kind, other_kind) = if is_soft {
        (ThresholdKind::Soft, ThresholdKind::Hard)
    } else {
        (ThresholdKind::Hard, ThresholdKind::Soft)
    };
    let tested = nearest(&thresholds, is_soft).ok_or(SkipReason::NoThreshold { signal, kind })?;
    let other = nearest(&thresholds, !is_soft);
    if let Some(other) = other.filter(|other| other.distance() <= tested.distance()) {
        return Err(SkipReason::OtherThresholdFirst {
            signal,
            first: other_kind,
            first_threshold: other.threshold,
            tested: kind,
            tested_threshold: tested.threshold,
        });
    }
    let (available, threshold) = (tested.available, tested.threshold);
    let stated = ramp_target(pressure);
    if tested.distance() < stated.distance {
        let needs = stated.distance;
        return Err(SkipReason::TooClose { signal, available, threshold, needs });
    }
    // Below a soft threshold there is room to the hard one, if any; below a hard threshold only the
    // amount that the node has left.
    let room =
        if is_soft { other.map(|other| other.distance() - tested.distance()) } else { Some(threshold) };
    let target = RampTarget {
        distance: tested.distance(),
        overshoot: stated.overshoot.min(room.unwrap_or(u64::MAX) / 2),
        ..stated
    };
    let takes = target.distance + target.overshoot;
    if takes > cap {
        return Err(SkipReason::OverCap { signal, available, threshold, takes, cap });
    }
    Ok(PressurePlan { available, threshold, grace: tested.grace, target })
}

/// Returns the threshold that a case tests, as configured in `configz` and resolved by statistics
/// of the node; `None` without such a threshold.
pub(crate) fn tested_threshold(
    pressure: &Pressure,
    configz: &Value,
    node: &NodeStats,
) -> Option<ResolvedThreshold> {
    let thresholds = resolved_thresholds(pressure.signal, configz, node).ok()?;
    nearest(&thresholds, pressure.soft_grace.is_some())
}

/// Returns the distance to the nearest threshold on a signal, soft or hard, in the unit of the
/// signal; `None` without a threshold.
///
/// # Errors
/// The Summary does not report the signal.
pub(crate) fn nearest_threshold(
    signal: case::PressureSignal,
    configz: &Value,
    summary: &Value,
) -> Result<Option<u64>, SkipReason> {
    let thresholds = resolved_thresholds(signal, configz, &node_stats(summary))?;
    Ok(thresholds.iter().map(ResolvedThreshold::distance).min())
}

fn nearest(thresholds: &[ResolvedThreshold], soft: bool) -> Option<ResolvedThreshold> {
    let of_kind = thresholds.iter().copied().filter(|threshold| threshold.is_soft() == soft);
    of_kind.min_by_key(ResolvedThreshold::distance)
}

fn resolved_thresholds(
    signal: case::PressureSignal,
    configz: &Value,
    node: &NodeStats,
) -> Result<Vec<ResolvedThreshold>, SkipReason> {
    let observations = observations(signal, node)?;
    let config = ThresholdConfig::deserialize(configz).unwrap_or_default();
    // A kubelet does not start with thresholds that it cannot parse.
    let thresholds = parse_threshold_config(&config).unwrap_or_default();
    let resolve = |threshold: &Threshold| {
        let observation = observations.iter().find(|observation| observation.signal == threshold.signal)?;
        let bytes = |value: i64| u64::try_from(value).unwrap_or(0);
        let amount = threshold.value.resolve(observation.capacity.as_ref())?;
        Some(ResolvedThreshold {
            available: bytes(observation.available.value()),
            threshold: bytes(amount.value()),
            grace: threshold.grace,
        })
    };
    Ok(thresholds.iter().filter_map(resolve).collect())
}

/// Returns the observation of a case's signal, and of the signal that the same resource also feeds:
/// allocatable memory, or imagefs on the same file system.
fn observations(signal: case::PressureSignal, node: &NodeStats) -> Result<Vec<Observation>, SkipReason> {
    let own = signal.eviction_signal();
    let stated = Observation::from_node_stats(own, node).ok_or(SkipReason::NoStatistics(signal))?;
    let related = match own {
        Signal::MemoryAvailable => Observation::from_node_stats(Signal::AllocatableMemoryAvailable, node),
        Signal::NodefsAvailable => Observation::from_node_stats(Signal::ImagefsAvailable, node)
            .filter(|images| images.capacity == stated.capacity),
        Signal::ImagefsAvailable => Observation::from_node_stats(Signal::NodefsAvailable, node)
            .filter(|nodefs| nodefs.capacity == stated.capacity),
        Signal::AllocatableMemoryAvailable
        | Signal::NodefsInodesFree
        | Signal::ImagefsInodesFree
        | Signal::ContainerfsAvailable
        | Signal::ContainerfsInodesFree
        | Signal::PidAvailable => None,
    };
    Ok([Some(stated), related].into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use evictlab_rules::quantity::MIB;
    use serde_json::json;

    use super::*;

    /// A Summary with `available` of 8000 MiB of memory, `pods` MiB of it available in the `pods`
    /// cgroup, and 3000 of 10000 MiB of disk.
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

    fn plan(pressure: &str, configz: &Value, summary: &Value, cap: u64) -> Result<(u64, u64), String> {
        let pressure: Pressure = serde_saphyr::from_str(pressure).unwrap();
        let plan = plan_pressure(&pressure, configz, summary, cap * MIB).map_err(|error| error.to_string());
        plan.map(|plan| (plan.target.distance / MIB, plan.target.overshoot / MIB))
    }

    #[test]
    fn plans_reach_the_threshold_of_the_node() {
        let hard = |text: &str| json!({"evictionHard": {"memory.available": text}});
        let soft = json!({"evictionHard": {"memory.available": "100Mi"}, "evictionSoft": {"memory.available": "500Mi"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"}});
        let memory = "signal: memory.available";
        let soft_grace = "{signal: memory.available, soft-grace: 3s}";
        let disk = "signal: nodefs.available";
        let ample = summary(1000, 8000);
        let rows = [
            (memory, hard("600Mi"), &ample, Ok((400, 96))),
            (memory, hard("100Mi"), &ample, Ok((900, 50))),
            (memory, hard("6.25%"), &ample, Ok((500, 96))),
            (memory, hard("100Mi"), &summary(1000, 700), Ok((600, 50))),
            (soft_grace, soft.clone(), &ample, Ok((500, 96))),
            (
                memory,
                hard("700Mi"),
                &ample,
                Err(
                    "memory.available is 1000Mi, the node's threshold 700Mi: the case needs 320Mi between them",
                ),
            ),
            (
                memory,
                hard("1100Mi"),
                &ample,
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
                &ample,
                Err("the node has no hard threshold on memory.available"),
            ),
            (memory, hard("0%"), &ample, Err("no hard threshold")),
            (soft_grace, hard("100Mi"), &ample, Err("no soft threshold on memory.available")),
            (
                memory,
                soft.clone(),
                &ample,
                Err("crosses the node's soft threshold of 500Mi before the hard threshold of 100Mi"),
            ),
            (
                memory,
                hard("100Mi"),
                &json!({"node": {}}),
                Err("the node's Summary does not report memory.available"),
            ),
            (
                disk,
                json!({"evictionHard": {"nodefs.available": "12.5%"}}),
                &ample,
                Err("would take 2375Mi, more than the cap"),
            ),
            (
                disk,
                json!({"evictionHard": {"nodefs.available": "12.5%", "imagefs.available": "21.875%"}}),
                &ample,
                Ok((812, 1093)),
            ),
        ];
        for (pressure, configz, summary, expected) in rows {
            let got = plan(pressure, &configz, summary, 2048);
            match (&got, expected) {
                (Ok(got), Ok(expected)) => assert_eq!(*got, expected, "{pressure} {configz}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                _ => panic!("{pressure} {configz}: {got:?} and not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_soft_threshold_has_the_grace_period_of_the_node() {
        let configz = json!({"evictionSoft": {"memory.available": "500Mi"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"}});
        let pressure: Pressure =
            serde_saphyr::from_str("{signal: memory.available, soft-grace: 3s}").unwrap();
        let plan = plan_pressure(&pressure, &configz, &summary(1000, 8000), 2048 * MIB).unwrap();
        assert_eq!(plan.grace, Some(Duration::from_secs(90)));
        let tested = tested_threshold(&pressure, &configz, &node_stats(&summary(1000, 8000)));
        assert_eq!(tested.map(|tested| tested.threshold), Some(500 * MIB));
    }

    /// The kubelet compares the threshold with what the `pods` cgroup has left, if that is less.
    #[test]
    fn the_tested_threshold_has_the_amount_that_it_is_compared_with() {
        let tested = |signal: &str, configz: Value, summary: &Value| {
            let pressure: Pressure = serde_saphyr::from_str(&format!("signal: {signal}")).unwrap();
            tested_threshold(&pressure, &configz, &node_stats(summary))
                .map(|tested| (tested.available, tested.threshold))
        };
        let memory = json!({"evictionHard": {"memory.available": "100Mi"}});
        assert_eq!(tested("memory.available", memory, &summary(1000, 700)), Some((700 * MIB, 100 * MIB)));
        let inodes = json!({"evictionHard": {"nodefs.inodesFree": "5%"}});
        let node = json!({"node": {"fs": {"inodesFree": 30_000, "inodes": 100_000}}});
        assert_eq!(tested("nodefs.inodesFree", inodes, &node), Some((30_000, 5000)));
    }
}
