//! Signals and thresholds of a node at one time.

use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::Quantity;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::{
    FsLayout, MissingDefaults, Observation, Signal, Threshold, ThresholdValue, update_containerfs_thresholds,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as ApiNode;
use schemars::JsonSchema;
use serde::Serialize;

use super::bounded_set::BoundedSet;
use super::kubelet_client::{KubeletSnapshot, QueryError};
use super::pod_fields::WatchedPod;
use super::ranking::{EvictionCandidate, ExemptPod, rank};
use evictlab_evidence::{missing_defaults, thresholds};

/// Objects of the API server and state of the kubelet, from which the view of a node is computed.
pub(super) struct NodeInput<'a> {
    pub node: &'a ApiNode,
    /// Pods bound to the node.
    pub pods: &'a [WatchedPod],
    pub snapshot: Result<&'a KubeletSnapshot, &'a QueryError>,
    pub signal: Signal,
    /// UIDs of pods that are being evicted.
    pub evicted: &'a BoundedSet<String>,
    pub at: Timestamp,
}

/// Signals and thresholds of a node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reading {
    /// Time of the query.
    pub at: Timestamp,
    /// The watched signal.
    pub signal: Signal,
    /// Available amount; `None` if the Summary does not contain it.
    pub available: Option<Quantity>,
    /// Capacity.
    pub capacity: Option<Quantity>,
    /// Thresholds of the signal, hard ones first.
    pub thresholds: Vec<ThresholdStatus>,
    /// Default thresholds that the configuration disables without naming their signals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_defaults: Option<MissingDefaults>,
    /// Other signals that are below a threshold.
    pub also_met: Vec<Signal>,
    /// Thresholds of all signals, for metrics.
    #[serde(skip)]
    pub(super) distances: Vec<(Signal, ThresholdStatus)>,
    /// Pods that can be evicted, the first candidate first.
    pub order: Vec<EvictionCandidate>,
    /// Pods that are never evicted.
    pub exempt: Vec<ExemptPod>,
}

/// A threshold and its distance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdStatus {
    /// Grace period of a soft threshold in seconds; `None` for a hard threshold.
    pub grace_seconds: Option<f64>,
    /// The configured value, such as `10%`.
    pub configured: String,
    /// The resolved value.
    pub quantity: Quantity,
    /// Available amount above the threshold; negative below it.
    pub margin: i64,
    /// True if the threshold is met.
    pub met: bool,
    /// Time at which the threshold was first observed as met.
    pub since: Option<Timestamp>,
}

impl ThresholdStatus {
    fn new(threshold: &Threshold, observed: &Observation, at: Timestamp) -> Option<Self> {
        let quantity = threshold.value.resolve(observed.capacity.as_ref())?;
        let met = threshold.is_met(observed, false);
        Some(Self {
            grace_seconds: threshold.grace.map(|grace| grace.as_secs_f64()),
            configured: configured(&threshold.value),
            margin: observed.available.value().saturating_sub(quantity.value()),
            quantity,
            met,
            since: met.then_some(at),
        })
    }

    /// Returns `hard`, or `soft` with its grace period.
    pub(super) fn kind(&self) -> String {
        match self.grace() {
            None => "hard".to_owned(),
            Some(grace) => format!("soft ({})", humantime::format_duration(grace)),
        }
    }

    /// Returns the grace period of a soft threshold.
    fn grace(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.grace_seconds?).ok()
    }

    /// Returns whether both are the same configured threshold, even if a percentage resolves
    /// differently.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.grace_seconds == other.grace_seconds && self.configured == other.configured
    }
}

impl Reading {
    /// Returns the first eviction candidate, or several equal ones.
    pub(super) fn first_candidates(&self) -> impl Iterator<Item = &EvictionCandidate> {
        self.order.iter().filter(|candidate| candidate.is_first())
    }

    /// Evaluates the state of a node's kubelet.
    pub(super) fn new(
        version: &KubeletVersion,
        input: &NodeInput<'_>,
        snapshot: &KubeletSnapshot,
        active: &[&WatchedPod],
    ) -> Self {
        let NodeInput { signal, evicted, at, .. } = *input;
        let KubeletSnapshot { config, sample } = snapshot;
        let layout = FsLayout::from_node_stats(&sample.node);
        let all = update_containerfs_thresholds(version, &thresholds(config), layout).later;
        let observed = Observation::from_node_stats(signal, &sample.node);
        let on_signal = all.iter().filter(|threshold| threshold.signal == signal);
        let mut statuses: Vec<ThresholdStatus> = on_signal
            .filter_map(|threshold| ThresholdStatus::new(threshold, observed.as_ref()?, at))
            .collect();
        statuses.sort_by_key(|status| status.grace_seconds.is_some());
        let distance = |threshold: &Threshold| {
            let observed = Observation::from_node_stats(threshold.signal, &sample.node)?;
            Some((threshold.signal, ThresholdStatus::new(threshold, &observed, at)?))
        };
        let distances = all.iter().filter_map(distance).collect();
        let mut also_met: Vec<Signal> = all
            .iter()
            .filter(|threshold| threshold.signal != signal && is_met(threshold, sample))
            .map(|threshold| threshold.signal)
            .collect();
        also_met.dedup();
        let (order, exempt) = rank(version, signal, sample, active, evicted);
        let (available, capacity) = observed.map(|observed| (observed.available, observed.capacity)).unzip();
        Self {
            at,
            signal,
            available,
            capacity: capacity.flatten(),
            thresholds: statuses,
            missing_defaults: missing_defaults(version, config),
            also_met,
            distances,
            order,
            exempt,
        }
    }

    /// Returns the threshold that is met first, or the one that is exceeded most.
    pub(super) fn nearest(&self) -> Option<&ThresholdStatus> {
        self.thresholds.iter().min_by_key(|status| status.margin)
    }

    /// Returns the used part of the usable amount, 0 to 1; `None` without a threshold.
    pub(super) fn used(&self) -> Option<f64> {
        let (available, capacity) = (self.available.as_ref()?.value(), self.capacity.as_ref()?.value());
        // Below the lowest threshold, the kubelet always evicts.
        let floor = self.thresholds.iter().map(|status| status.quantity.value()).min()?;
        let all = capacity.saturating_sub(floor).max(1) as f64;
        Some((capacity.saturating_sub(available) as f64 / all).clamp(0.0, 1.0))
    }
}

/// Formats a configured value. The kubelet stores percentages in single precision, with seven
/// digits: 60% is 60.000004 of a hundred.
fn configured(value: &ThresholdValue) -> String {
    match value {
        ThresholdValue::Quantity(quantity) => quantity.to_string(),
        ThresholdValue::Fraction(part) => format!("{}%", (f64::from(*part) * 1e6).round() / 1e4),
    }
}

fn is_met(threshold: &Threshold, sample: &Sample) -> bool {
    Observation::from_node_stats(threshold.signal, &sample.node)
        .is_some_and(|observed| threshold.is_met(&observed, false))
}
