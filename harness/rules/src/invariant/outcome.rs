//! The input and the output of a check.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{EvictedEvent, Invariant};
use crate::KubeletVersion;
use crate::pod::Pod;
use crate::summary::Sample;
use crate::threshold::Threshold;

/// Everything that is known about one Evicted event.
#[derive(Clone, Copy, Debug)]
pub struct EventEvidence<'a> {
    /// Version of the kubelet that evicted the pod.
    pub version: &'a KubeletVersion,
    /// Evicted pod.
    pub pod: &'a Pod,
    /// Event to check.
    pub event: &'a EvictedEvent,
    /// All Evicted events of the pod, including `event`.
    pub events: &'a [EvictedEvent],
    /// `status.message`, if `status.reason` is `Evicted`.
    pub status: Option<&'a str>,
    /// Message of the kubelet's `DisruptionTarget` condition.
    pub condition: Option<&'a str>,
    /// Time of the pod's first ExceededGracePeriod event.
    pub exceeded_grace: Option<Timestamp>,
    /// Thresholds that the kubelet is configured with; empty if unknown.
    pub thresholds: &'a [Threshold],
    /// Summaries from the time around the event.
    pub samples: &'a [Sample],
}

/// Result of checking an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvariantOutcome {
    /// The invariant holds.
    Holds,
    /// The invariant is violated.
    Violated,
    /// The evidence neither proves nor disproves the invariant.
    Unproven,
}

/// Result of checking one invariant on one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Checked invariant.
    pub invariant: Invariant,
    /// Result.
    pub outcome: InvariantOutcome,
    /// Description of the expected value.
    pub expected: String,
    /// Description of the observed value.
    pub observed: String,
}

impl Finding {
    pub(super) fn new(
        invariant: Invariant,
        outcome: InvariantOutcome,
        expected: String,
        observed: String,
    ) -> Self {
        Self { invariant, outcome, expected, observed }
    }

    /// Returns a finding that either holds or is violated.
    pub(super) fn proven(invariant: Invariant, holds: bool, expected: String, observed: String) -> Self {
        Self::new(
            invariant,
            if holds { InvariantOutcome::Holds } else { InvariantOutcome::Violated },
            expected,
            observed,
        )
    }
}
