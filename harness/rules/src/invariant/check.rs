//! All invariants, on one Evicted event.

use serde::{Deserialize, Serialize};

use super::{EvictedEvent, Invariant, limits, pressure, witnesses};
use crate::KubeletVersion;
use crate::message::EvictionMessage;
use crate::pod::{Pod, Sample};
use crate::threshold::Threshold;

/// Everything that is known about one Evicted event.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The kubelet.
    pub version: &'a KubeletVersion,
    /// The pod.
    pub pod: &'a Pod,
    /// The event.
    pub event: &'a EvictedEvent,
    /// All Evicted events of the pod, this one too.
    pub events: &'a [EvictedEvent],
    /// `status.message`, where `status.reason` is `Evicted`.
    pub status: Option<&'a str>,
    /// The message of the kubelet's `DisruptionTarget` condition.
    pub condition: Option<&'a str>,
    /// The thresholds that the node is configured with; empty if that is not known.
    pub thresholds: &'a [Threshold],
    /// Summaries from around the event.
    pub samples: &'a [Sample],
}

/// What came of an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It does not.
    Violated,
    /// The evidence neither proves nor disproves it.
    Unproven,
}

/// One invariant on one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which.
    pub invariant: Invariant,
    /// What came of it.
    pub outcome: Outcome,
    /// What should be seen.
    pub expected: String,
    /// What was seen.
    pub observed: String,
}

impl Finding {
    pub(super) fn new(invariant: Invariant, outcome: Outcome, expected: String, observed: String) -> Self {
        Self { invariant, outcome, expected, observed }
    }

    pub(super) fn of(invariant: Invariant, holds: bool, expected: String, observed: String) -> Self {
        Self::new(invariant, if holds { Outcome::Holds } else { Outcome::Violated }, expected, observed)
    }
}

/// Checks every invariant that applies to the event. Pure: the same evidence gives the same findings.
pub fn check(evidence: &Evidence<'_>) -> Vec<Finding> {
    let known = |holds, observed| {
        Finding::of(
            Invariant::MessageIsKnown,
            holds,
            "a message of kubelets 1.26 to 1.36".to_owned(),
            observed,
        )
    };
    let mut findings = witnesses::check(evidence);
    match evidence.event.message.parse::<EvictionMessage>() {
        Err(error) => findings.insert(0, known(false, error.to_string())),
        Ok(message) => {
            findings.insert(0, known(true, evidence.event.message.clone()));
            findings.extend(match &message {
                EvictionMessage::NodePressure(message) => pressure::check(evidence, message),
                other => limits::check(evidence, other),
            });
        }
    }
    findings
}
