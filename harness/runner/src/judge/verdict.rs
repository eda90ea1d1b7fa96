//! The words a judgement can end with.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a case came to on one kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything expected was seen.
    Passed,
    /// Something else was seen, and no known bug explains it.
    Failed,
    /// A known bug showed, as stated for this kubelet.
    Reproduced,
    /// A known bug should have shown and did not.
    Fixed,
    /// The evidence does not suffice.
    Inconclusive,
    /// Not run.
    Skipped,
    /// The harness could not run it to its end.
    Error,
}

/// Why the evidence does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// A container was killed for memory before the kubelet evicted its pod.
    KilledForMemory,
    /// Pressure never came: the signal stayed above its threshold.
    ThresholdNotReached,
    /// The kubelet rejected a pod at admission.
    RejectedAtAdmission,
    /// A pod did not start.
    PodNeverStarted,
    /// The host could not take the case.
    HostUnfit,
    /// A witness that the case needs is missing.
    EvidenceLost,
    /// Pressure outran the kubelet's container statistics.
    StatsOutrun,
}

/// Where a case was when it ended, in the order of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Waiting for a node.
    Lease,
    /// Changing the kubelet's configuration.
    Tune,
    /// Creating the namespace and the pods.
    Stage,
    /// Pods start, pressure grows, the kubelet acts.
    Observe,
    /// Judging the evidence.
    Judge,
    /// Putting the node back and proving it.
    Reset,
}

/// One thing that was checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// What was checked, such as `message names sidecars` or the name of an invariant.
    pub name: String,
    /// Whether it held.
    pub holds: bool,
    /// What should have been seen.
    pub expected: String,
    /// What was seen.
    pub observed: String,
}

/// What each witness of one pod's eviction said.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Testimony {
    /// The pod.
    pub pod: String,
    /// The messages of its Evicted events, first one first.
    pub events: Vec<String>,
    /// `status.message`, where `status.reason` is `Evicted`.
    pub status: Option<String>,
    /// The `DisruptionTarget` condition's message.
    pub condition: Option<String>,
    /// The annotations of the first Evicted event.
    pub annotations: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A verdict with its grounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// One line for a person: why.
    pub why: String,
    /// For `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// For `error`: where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// For `reproduced` and `fixed`: the bug, such as `kubernetes/kubernetes#124938` or its sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_bug: Option<String>,
    /// What was counted, for a case that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<super::Rate>,
    /// Everything that was checked.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// What the witnesses said, by pod.
    #[serde(default)]
    pub testimony: Vec<Testimony>,
    /// Expected against observed, taken apart, as a unified diff; empty unless something differs.
    #[serde(default)]
    pub diff: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Reproduced => "reproduced",
            Self::Fixed => "fixed",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::KilledForMemory => "killed-for-memory",
            Self::ThresholdNotReached => "threshold-not-reached",
            Self::RejectedAtAdmission => "rejected-at-admission",
            Self::PodNeverStarted => "pod-never-started",
            Self::HostUnfit => "host-unfit",
            Self::EvidenceLost => "evidence-lost",
            Self::StatsOutrun => "stats-outrun",
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lease => "lease",
            Self::Tune => "tune",
            Self::Stage => "stage",
            Self::Observe => "observe",
            Self::Judge => "judge",
            Self::Reset => "reset",
        })
    }
}

impl Judgement {
    /// A judgement without evidence.
    pub fn without_evidence(verdict: Verdict, why: impl Into<String>) -> Self {
        Self {
            verdict,
            why: why.into(),
            doubt: None,
            phase: None,
            known_bug: None,
            rate: None,
            checks: vec![],
            testimony: vec![],
            diff: String::new(),
        }
    }
}
