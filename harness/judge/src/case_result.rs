//! The result of a case: its verdict with the evidence for it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verdict::{InconclusiveReason, Verdict};

/// Phases of a case, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Waiting for a node, and giving it what the case states.
    #[serde(alias = "lease")]
    AwaitNode,
    /// Changing the kubelet's configuration.
    #[serde(alias = "tune")]
    Configure,
    /// Creating the namespace and the pods.
    #[serde(alias = "stage")]
    CreatePods,
    /// Observing the pods and the kubelet while pressure grows.
    Observe,
    /// Judging the evidence.
    Judge,
    /// Restoring the node and verifying that it recovered.
    #[serde(alias = "reset")]
    Recover,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
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
    #[serde(alias = "what")]
    pub label: String,
    /// Number of observations for which the property holds.
    #[serde(alias = "right")]
    pub count: u64,
    /// Number of observations.
    #[serde(alias = "of")]
    pub total: u64,
}

/// The result of a try after which the case was run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierTry {
    /// The verdict.
    pub verdict: Verdict,
    /// One-line explanation.
    pub why: String,
    /// Reason of `inconclusive`.
    #[serde(default, alias = "doubt", skip_serializing_if = "Option::is_none")]
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
    #[serde(alias = "doubt", skip_serializing_if = "Option::is_none")]
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
    #[serde(default, alias = "testimony")]
    pub evictions: Vec<EvictionRecord>,
    /// Unified diff of the expected and the observed eviction message; empty if they agree.
    #[serde(default)]
    pub diff: String,
    /// Earlier tries of the same attempt, in order.
    #[serde(default, alias = "earlier_tries", skip_serializing_if = "Vec::is_empty")]
    pub earlier_tries: Vec<EarlierTry>,
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

    /// Adds earlier tries. `passed` becomes `flaky`, unless every earlier try was
    /// `reclaim-sufficed`. `inconclusive` becomes `failed` if this and an earlier try miss an
    /// Evicted event.
    pub fn after_tries(mut self, tries: Vec<EarlierTry>) -> Self {
        let missing = Some(InconclusiveReason::EventMissing);
        let without_event = tries.iter().filter(|earlier| earlier.inconclusive_reason == missing).count();
        if self.inconclusive_reason == missing && without_event > 0 {
            self.verdict = Verdict::Failed;
            self.inconclusive_reason = None;
            self.why =
                format!("the kubelet did not send the event, in {} tries: {}", without_event + 1, self.why);
        }
        if self.verdict == Verdict::Passed && !tries.is_empty() {
            // A node deletes its unused images only once.
            let is_flaky = |earlier: &EarlierTry| {
                earlier.inconclusive_reason != Some(InconclusiveReason::ReclaimSufficed)
            };
            let flaky = tries.iter().position(is_flaky);
            if flaky.is_some() {
                self.verdict = Verdict::Flaky;
            }
            let cited = flaky.unwrap_or(0);
            let EarlierTry { verdict, why, inconclusive_reason } = &tries[cited];
            let reason = inconclusive_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let (number, why) = (cited + 1, why.trim_end());
            self.why = format!("{}; try {number} was {verdict}{reason}: {why}", self.why);
        }
        self.earlier_tries = tries;
        self
    }

    /// Returns whether `--retries` repeats the case: it failed or is inconclusive.
    pub fn is_retryable(&self) -> bool {
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
        let other = EarlierTry { inconclusive_reason: None, ..missing.as_earlier_try() };
        let third = missing.clone().after_tries(vec![other, missing.as_earlier_try()]);
        assert!(third.why.contains("in 2 tries"), "{}", third.why);
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
        let second = of(Verdict::Passed, vec![reclaimed, first.clone()]);
        assert_eq!(
            (second.verdict, second.why.contains("; try 2 was inconclusive (thr")),
            (Verdict::Flaky, true)
        );
        for verdict in [Verdict::Failed, Verdict::Reproduced, Verdict::Inconclusive] {
            let result = of(verdict, vec![first.clone()]);
            assert_eq!((result.verdict, result.earlier_tries.len()), (verdict, 1));
        }
        assert_eq!(of(Verdict::Passed, vec![]).verdict, Verdict::Passed);
    }
}
