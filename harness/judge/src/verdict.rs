//! Verdicts and their reasons.

use std::fmt;

use evictlab_case::KnownBug;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of a case on one kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The expectation of the case holds.
    Passed,
    /// The expectation of the case holds, but only after an earlier try was inconclusive.
    Flaky,
    /// The expectation does not hold, and no known bug explains the difference.
    Failed,
    /// A known bug of this kubelet showed as the case states it.
    Reproduced,
    /// A known bug of this kubelet did not show: the expectation holds.
    Fixed,
    /// The evidence does not suffice for a verdict.
    Inconclusive,
    /// The case was not run.
    Skipped,
    /// The harness failed to run the case to its end.
    Error,
}

impl Verdict {
    /// Returns whether the kubelet behaved as the case states.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Passed | Self::Flaky | Self::Reproduced | Self::Fixed)
    }

    /// Returns the verdict without the history of its tries: `passed` for `flaky`.
    #[must_use]
    pub fn without_tries(self) -> Self {
        if self == Self::Flaky { Self::Passed } else { self }
    }

    /// Returns whether the verdict says something about the kubelet.
    pub fn is_conclusive(self) -> bool {
        self.is_success() || self == Self::Failed
    }
}

/// Reason why the evidence does not suffice for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InconclusiveReason {
    /// A container was OOM-killed before the kubelet evicted its pod.
    KilledForMemory,
    /// The signal stayed above its threshold.
    ThresholdNotReached,
    /// The kubelet rejected a pod at admission.
    RejectedAtAdmission,
    /// A pod did not start.
    PodNeverStarted,
    /// The host is not able to run the case.
    HostUnfit,
    /// Evidence that the case needs is missing.
    EvidenceLost,
    /// The kubelet lost the status of a container, and with it the time of its end.
    StatusLost,
    /// An Evicted event is missing, although later events about the pod arrived. If that happens
    /// twice, the kubelet did not send the event.
    EventMissing,
    /// The kubelet evicted before its container statistics showed the usage.
    StatsOutrun,
    /// The kubelet evicted another pod before the data of the expected one were deleted.
    ReclaimPending,
    /// The kubelet freed enough of the disk without an eviction: it deleted unused images or dead
    /// containers, which other cases or the node itself had left.
    ReclaimSufficed,
    /// The case's trigger was never observed.
    TriggerNotObserved,
    /// The case ended before its end condition held or its steps were done.
    EndNotReached,
}

/// An inconclusive verdict's reason and explanation.
#[derive(Clone, Debug)]
pub(crate) struct Inconclusive {
    pub(crate) reason: InconclusiveReason,
    pub(crate) why: String,
    /// Name of the pod whose Evicted event is missing, if the explanation states that.
    pub(crate) pod_without_event: Option<String>,
}

impl Inconclusive {
    pub(crate) fn new(reason: InconclusiveReason, why: impl Into<String>) -> Self {
        Self { reason, why: why.into(), pod_without_event: None }
    }

    /// Returns the reason of a verdict for which evidence is missing.
    pub(crate) fn evidence_lost(why: impl Into<String>) -> Self {
        Self::new(InconclusiveReason::EvidenceLost, why)
    }
}

/// Phases of a case, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Waiting for a node.
    Lease,
    /// Changing the kubelet's configuration.
    Tune,
    /// Creating the namespace and the pods.
    Stage,
    /// Observing the pods and the kubelet while pressure grows.
    Observe,
    /// Judging the evidence.
    Judge,
    /// Restoring the node and verifying that it recovered.
    Reset,
}

/// Result of one check.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Name of the check, such as `message names sidecars` or that of an invariant.
    pub name: String,
    /// True if the observed value is as expected.
    pub holds: bool,
    /// The expected value.
    pub expected: String,
    /// The observed value.
    pub observed: String,
}

/// The kubelet's reports of one pod's eviction.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct EvictionRecord {
    /// Name of the pod.
    pub pod: String,
    /// Messages of the Evicted events, oldest first.
    pub events: Vec<String>,
    /// `status.message` if `status.reason` is `Evicted`.
    pub status: Option<String>,
    /// Message of the `DisruptionTarget` condition.
    pub condition: Option<String>,
    /// Annotations of the first Evicted event.
    pub annotations: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A count of observations for which a property holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Description of what is counted.
    #[serde(rename = "what")]
    pub label: String,
    /// Number of observations for which the property holds.
    #[serde(rename = "right")]
    pub count: u64,
    /// Number of observations.
    #[serde(rename = "of")]
    pub total: u64,
}

/// The result of a try after which the case was run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierTry {
    /// The verdict.
    pub verdict: Verdict,
    /// One-line explanation.
    pub why: String,
    /// Reason of `inconclusive`.
    #[serde(default, rename = "doubt", skip_serializing_if = "Option::is_none")]
    pub inconclusive_reason: Option<InconclusiveReason>,
}

/// A verdict with the evidence for it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    /// The verdict.
    pub verdict: Verdict,
    /// One-line explanation.
    pub why: String,
    /// Reason of `inconclusive`.
    #[serde(rename = "doubt", skip_serializing_if = "Option::is_none")]
    pub inconclusive_reason: Option<InconclusiveReason>,
    /// Phase of an `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Bug of `reproduced` and `fixed`: `kubernetes/kubernetes#124938`, or its description.
    #[serde(alias = "known_bug", skip_serializing_if = "Option::is_none")]
    pub known_bug: Option<String>,
    /// Rate of a case that has `expect.rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// All checks.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// The kubelet's reports of each eviction.
    #[serde(default, rename = "testimony")]
    pub evictions: Vec<EvictionRecord>,
    /// Unified diff of the expected and the observed eviction message; empty if they agree.
    #[serde(default)]
    pub diff: String,
    /// Earlier tries of the same attempt, in order.
    #[serde(default, alias = "earlier_tries", skip_serializing_if = "Vec::is_empty")]
    pub earlier_tries: Vec<EarlierTry>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Flaky => "flaky",
            Self::Failed => "failed",
            Self::Reproduced => "reproduced",
            Self::Fixed => "fixed",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for InconclusiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::KilledForMemory => "killed-for-memory",
            Self::ThresholdNotReached => "threshold-not-reached",
            Self::RejectedAtAdmission => "rejected-at-admission",
            Self::PodNeverStarted => "pod-never-started",
            Self::HostUnfit => "host-unfit",
            Self::EvidenceLost => "evidence-lost",
            Self::StatusLost => "status-lost",
            Self::EventMissing => "event-missing",
            Self::StatsOutrun => "stats-outrun",
            Self::ReclaimPending => "reclaim-pending",
            Self::ReclaimSufficed => "reclaim-sufficed",
            Self::TriggerNotObserved => "trigger-not-observed",
            Self::EndNotReached => "end-not-reached",
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

impl CaseResult {
    /// Returns a result without checks.
    pub fn without_evidence(verdict: Verdict, why: impl Into<String>) -> Self {
        Self {
            verdict,
            why: why.into(),
            inconclusive_reason: None,
            phase: None,
            known_bug: None,
            rate: None,
            checks: vec![],
            evictions: vec![],
            diff: String::new(),
            earlier_tries: vec![],
        }
    }

    /// Returns the result after earlier tries: `flaky` instead of `passed` if there were any that do
    /// not only show the state of the node before the case, and
    /// `failed` if an Evicted event was missing in this and an earlier try.
    pub fn after_tries(mut self, tries: Vec<EarlierTry>) -> Self {
        let missing = Some(InconclusiveReason::EventMissing);
        if self.inconclusive_reason == missing
            && tries.iter().any(|earlier| earlier.inconclusive_reason == missing)
        {
            self.verdict = Verdict::Failed;
            self.inconclusive_reason = None;
            self.why =
                format!("the kubelet did not send the event, in {} tries: {}", tries.len() + 1, self.why);
        }
        if let (Verdict::Passed, Some(first)) = (self.verdict, tries.first()) {
            let reason = first.inconclusive_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            // A node deletes its unused images only once.
            let is_flaky = |earlier: &EarlierTry| {
                earlier.inconclusive_reason != Some(InconclusiveReason::ReclaimSufficed)
            };
            if tries.iter().any(is_flaky) {
                self.verdict = Verdict::Flaky;
            }
            self.why = format!("{}; try 1 was {}{reason}: {}", self.why, first.verdict, first.why.trim_end());
        }
        self.earlier_tries = tries;
        self
    }

    /// Returns whether another try may have another verdict that is a success: the case failed, or is
    /// inconclusive.
    pub fn is_unsuccessful(&self) -> bool {
        matches!(self.verdict, Verdict::Failed | Verdict::Inconclusive)
    }

    /// Returns this result as an earlier try.
    pub fn as_earlier_try(&self) -> EarlierTry {
        EarlierTry {
            verdict: self.verdict,
            why: self.why.clone(),
            inconclusive_reason: self.inconclusive_reason,
        }
    }
}

/// Returns the label of a known bug: its upstream reference, or its description.
pub(crate) fn bug_label(bug: &KnownBug) -> String {
    let upstream = bug.upstream.as_ref().map(ToString::to_string);
    upstream.or_else(|| bug.about.clone()).unwrap_or_else(|| "a known bug".to_owned())
}

/// Returns the text with its first letter in upper case.
pub(crate) fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_missing_twice_was_not_sent() {
        let missing = CaseResult {
            inconclusive_reason: Some(InconclusiveReason::EventMissing),
            ..CaseResult::without_evidence(Verdict::Inconclusive, "the Evicted event of web is missing")
        };
        let once = missing.clone().after_tries(vec![]);
        assert_eq!(
            (once.verdict, once.inconclusive_reason),
            (Verdict::Inconclusive, Some(InconclusiveReason::EventMissing))
        );
        let twice = missing.clone().after_tries(vec![missing.as_earlier_try()]);
        assert_eq!((twice.verdict, twice.inconclusive_reason), (Verdict::Failed, None));
        assert_eq!(
            twice.why,
            "the kubelet did not send the event, in 2 tries: the Evicted event of web is missing"
        );
        let lost =
            CaseResult { inconclusive_reason: Some(InconclusiveReason::EvidenceLost), ..missing.clone() };
        assert_eq!(lost.after_tries(vec![missing.as_earlier_try()]).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn only_a_pass_after_earlier_tries_is_flaky() {
        let first = EarlierTry {
            verdict: Verdict::Inconclusive,
            why: "el1 was not reached\n".to_owned(),
            inconclusive_reason: Some(InconclusiveReason::ThresholdNotReached),
        };
        let of = |verdict, tries| CaseResult::without_evidence(verdict, "as stated").after_tries(tries);
        let flaky = of(Verdict::Passed, vec![first.clone()]);
        assert_eq!(flaky.verdict, Verdict::Flaky);
        assert_eq!(
            flaky.why,
            "as stated; try 1 was inconclusive (threshold-not-reached): el1 was not reached"
        );
        let reclaimed =
            EarlierTry { inconclusive_reason: Some(InconclusiveReason::ReclaimSufficed), ..first.clone() };
        let passed = of(Verdict::Passed, vec![reclaimed.clone()]);
        assert_eq!((passed.verdict, passed.earlier_tries.len()), (Verdict::Passed, 1));
        assert!(passed.why.contains("try 1 was inconclusive (reclaim-sufficed)"), "{}", passed.why);
        assert_eq!(of(Verdict::Passed, vec![reclaimed, first.clone()]).verdict, Verdict::Flaky);
        for verdict in [Verdict::Failed, Verdict::Reproduced, Verdict::Inconclusive] {
            let result = of(verdict, vec![first.clone()]);
            assert_eq!((result.verdict, result.earlier_tries.len()), (verdict, 1));
        }
        assert_eq!(of(Verdict::Passed, vec![]).verdict, Verdict::Passed);
    }
}
