//! Verdicts, and the reasons of inconclusive ones.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of a case on one kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The expectation of the case holds.
    Passed,
    /// The expectation holds, but an earlier try was inconclusive or, with `--retries`, failed.
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for InconclusiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_results_and_can_be_padded() {
        assert_eq!(format!("{:<7}|", Verdict::Flaky), "flaky  |");
        assert_eq!(InconclusiveReason::ReclaimSufficed.to_string(), "reclaim-sufficed");
    }
}
