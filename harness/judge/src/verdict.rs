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

/// Predicates of verdicts. Each is an exhaustive match: a new verdict does not compile until it has
/// a place in all of them.
///
/// | verdict | [success] | [conclusive] | [failure] | [attention] | [final] | [alternates] |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | `passed` | yes | yes | | | yes | yes |
/// | `flaky` | yes | yes | | | yes | |
/// | `failed` | | yes | yes | yes | yes | |
/// | `reproduced` | yes | yes | | | yes | yes |
/// | `fixed` | yes | yes | | | yes | |
/// | `inconclusive` | | | | yes | | |
/// | `skipped` | | | | | yes | |
/// | `error` | | | yes | yes | | |
///
/// [success]: Self::is_success
/// [conclusive]: Self::is_conclusive
/// [failure]: Self::is_failure
/// [attention]: Self::needs_attention
/// [final]: Self::ends_repetition
/// [alternates]: Self::may_alternate
impl Verdict {
    /// Returns whether the verdict counts as a success: exit status 0.
    pub fn is_success(self) -> bool {
        match self {
            Self::Passed | Self::Flaky | Self::Reproduced | Self::Fixed => true,
            Self::Failed | Self::Inconclusive | Self::Skipped | Self::Error => false,
        }
    }

    /// Returns whether the verdict is evidence about the kubelet: not `skipped`, `inconclusive` or
    /// `error`.
    pub fn is_conclusive(self) -> bool {
        match self {
            Self::Passed | Self::Flaky | Self::Failed | Self::Reproduced | Self::Fixed => true,
            Self::Inconclusive | Self::Skipped | Self::Error => false,
        }
    }

    /// Returns whether the verdict counts as a failure, after which `--fail-fast` stops.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Error => true,
            Self::Passed | Self::Flaky | Self::Reproduced | Self::Fixed => false,
            Self::Inconclusive | Self::Skipped => false,
        }
    }

    /// Returns whether a person has to find the cause of the verdict.
    pub fn needs_attention(self) -> bool {
        match self {
            Self::Failed | Self::Inconclusive | Self::Error => true,
            Self::Passed | Self::Flaky | Self::Reproduced | Self::Fixed | Self::Skipped => false,
        }
    }

    /// Returns whether a case that is repeated until its verdict is known ends with the verdict.
    /// Another try of a skipped case is skipped again.
    pub fn ends_repetition(self) -> bool {
        match self {
            Self::Passed | Self::Flaky | Self::Failed | Self::Reproduced | Self::Fixed => true,
            Self::Skipped => true,
            Self::Inconclusive | Self::Error => false,
        }
    }

    /// Returns whether the verdict is one of the two that a case with an intermittent bug gives in
    /// turn: they are equivalent in a comparison.
    pub fn may_alternate(self) -> bool {
        match self {
            Self::Passed | Self::Reproduced => true,
            Self::Flaky | Self::Failed | Self::Fixed => false,
            Self::Inconclusive | Self::Skipped | Self::Error => false,
        }
    }

    /// Returns the verdict without the history of its tries: `passed` for `flaky`.
    #[must_use]
    pub fn without_tries(self) -> Self {
        if self == Self::Flaky { Self::Passed } else { self }
    }
}

/// Reason why the evidence does not suffice for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InconclusiveReason {
    /// A container was terminated by SIGKILL before the kubelet evicted its pod: by the kernel for
    /// memory, or by another process.
    #[serde(alias = "killed-for-memory")]
    KilledBeforeEviction,
    /// The signal stayed above its threshold.
    ThresholdNotReached,
    /// The kubelet rejected a pod at admission.
    RejectedAtAdmission,
    /// A pod did not start, or a container fails again and again.
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
    /// The kubelet evicted before its statistics showed the usage.
    #[serde(alias = "stats-outrun")]
    StaleStatistics,
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
    fn the_guide_has_a_row_for_every_reason() {
        let guide = std::fs::read_to_string("../guides/reference/verdicts.md").unwrap();
        let schema = serde_json::to_value(schemars::schema_for!(InconclusiveReason)).unwrap();
        let reasons: Vec<_> = schema["oneOf"].as_array().unwrap().iter().map(|one| &one["const"]).collect();
        assert!(reasons.len() > 10, "{reasons:?}");
        for reason in reasons {
            let row = format!("\n| `{}` | ", reason.as_str().unwrap());
            assert!(guide.contains(&row), "no row {row:?}");
        }
    }

    #[test]
    fn names_are_those_of_the_results_and_can_be_padded() {
        assert_eq!(format!("{:<7}|", Verdict::Flaky), "flaky  |");
        assert_eq!(InconclusiveReason::ReclaimSufficed.to_string(), "reclaim-sufficed");
        assert_eq!(InconclusiveReason::KilledBeforeEviction.to_string(), "killed-before-eviction");
        assert_eq!(InconclusiveReason::StaleStatistics.to_string(), "stale-statistics");
    }
}
