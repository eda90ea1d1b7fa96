//! One look at a node: what it has left, against its thresholds.

use std::collections::BTreeSet;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::Sample;
use evictlab_rules::quantity::Quantity;
use evictlab_rules::ranking::Disks;
use evictlab_rules::threshold::{Amount, Observation, Signal, Threshold, with_containerfs};
use jiff::Timestamp;
use serde::Serialize;

use super::answer::Answer;
use super::order::{Active, Candidate, Never, order};
use crate::observe::thresholds;

/// What was read of a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reading {
    /// When it was asked.
    pub at: Timestamp,
    /// The signal that is watched.
    pub signal: Signal,
    /// What is left of it; none if the Summary does not tell.
    pub available: Option<Quantity>,
    /// What there is in all.
    pub capacity: Option<Quantity>,
    /// The thresholds on the signal, hard ones first.
    pub thresholds: Vec<Limit>,
    /// Other signals that have less left than a threshold on them.
    pub also_met: Vec<Signal>,
    /// The pods that may be evicted, the first to go first.
    pub order: Vec<Candidate>,
    /// Those that are never evicted.
    pub never: Vec<Never>,
}

/// A threshold, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// How long a soft threshold must have been met before the kubelet acts, in seconds; none for a hard one.
    pub grace_seconds: Option<f64>,
    /// As it is configured, such as `10%`.
    pub stated: String,
    /// What it comes to.
    pub quantity: Quantity,
    /// What is left above it; less than 0 below it.
    pub left: i64,
    /// Whether less than it is left.
    pub met: bool,
    /// Since when it was seen to be met.
    pub since: Option<Timestamp>,
}

impl Limit {
    fn of(threshold: &Threshold, seen: &Observation, at: Timestamp) -> Option<Self> {
        let quantity = threshold.amount.of(seen.capacity.as_ref())?;
        let met = threshold.is_met(seen, false);
        Some(Self {
            grace_seconds: threshold.grace.map(|grace| grace.as_secs_f64()),
            stated: stated(&threshold.amount),
            left: seen.available.value().saturating_sub(quantity.value()),
            quantity,
            met,
            since: met.then_some(at),
        })
    }

    /// `hard threshold of 100Mi`, without the amount.
    pub(super) fn kind(&self) -> String {
        match self.grace() {
            None => "hard".to_owned(),
            Some(grace) => format!("soft ({})", humantime::format_duration(grace)),
        }
    }

    /// The grace of a soft one.
    fn grace(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.grace_seconds?).ok()
    }

    /// Whether it is the same threshold, whatever its percentage comes to now.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.grace_seconds == other.grace_seconds && self.stated == other.stated
    }
}

impl Reading {
    /// What an answer tells. `evicted` are the uids of pods that are being evicted already.
    pub(super) fn of(
        version: &KubeletVersion,
        signal: Signal,
        answer: &Answer,
        active: &[Active],
        evicted: &BTreeSet<String>,
        at: Timestamp,
    ) -> Self {
        let Answer { config, sample } = answer;
        let (all, _) = with_containerfs(version, &thresholds(config), Disks::of(&sample.node));
        let seen = Observation::of(signal, &sample.node);
        let of_it = all.iter().filter(|threshold| threshold.signal == signal);
        let mut limits: Vec<Limit> =
            of_it.filter_map(|threshold| Limit::of(threshold, seen.as_ref()?, at)).collect();
        limits.sort_by_key(|limit| limit.grace_seconds.is_some());
        let mut also_met: Vec<Signal> = all
            .iter()
            .filter(|threshold| threshold.signal != signal && is_met(threshold, sample))
            .map(|threshold| threshold.signal)
            .collect();
        also_met.dedup();
        let (order, never) = order(version, signal, sample, active, evicted);
        let (available, capacity) = seen.map(|seen| (seen.available, seen.capacity)).unzip();
        Self {
            at,
            signal,
            available,
            capacity: capacity.flatten(),
            thresholds: limits,
            also_met,
            order,
            never,
        }
    }

    /// The threshold that would be met first, or that is met by most.
    pub(super) fn nearest(&self) -> Option<&Limit> {
        self.thresholds.iter().min_by_key(|limit| limit.left)
    }

    /// How much of what may be used is used, 0 to 1; none without a threshold.
    pub(super) fn used(&self) -> Option<f64> {
        let (available, capacity) = (self.available.as_ref()?.value(), self.capacity.as_ref()?.value());
        // The last to be met is where pods go for certain.
        let floor = self.thresholds.iter().map(|limit| limit.quantity.value()).min()?;
        let all = capacity.saturating_sub(floor).max(1) as f64;
        Some((capacity.saturating_sub(available) as f64 / all).clamp(0.0, 1.0))
    }
}

/// As it is configured. Single precision has seven digits: 60% is 60.000004 of a hundred.
fn stated(amount: &Amount) -> String {
    match amount {
        Amount::Quantity(quantity) => quantity.to_string(),
        Amount::Fraction(part) => format!("{}%", (f64::from(*part) * 1e6).round() / 1e4),
    }
}

fn is_met(threshold: &Threshold, sample: &Sample) -> bool {
    Observation::of(threshold.signal, &sample.node).is_some_and(|seen| threshold.is_met(&seen, false))
}
