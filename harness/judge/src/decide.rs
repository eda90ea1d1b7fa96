//! The decision on the verdict of a case from its evidence.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::Invariant;
use evictlab_rules::message::EvictionMessage;

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::case_result::{CaseResult, Check, Phase, Rate};
use crate::check::{CheckResults, Expectation};
use crate::inconclusive::Stall;
use crate::invariants::InvariantCheck;
use crate::known_bug::{bug_label, known_bug};
use crate::rate::Unrated;
use crate::verdict::{Inconclusive, Verdict};
use crate::{assertions, inconclusive, invariants};
use evictlab_case::{Case, KnownBug};
use evictlab_evidence::Observations;

/// Judges the evidence of a case on a node that is expected to run `kubelet`.
///
/// The verdict is `passed` if the expectation holds, or `fixed` if a known bug should have shown;
/// `reproduced` if the expectation of the known bug holds instead; otherwise `failed`, or
/// `inconclusive` if the evidence does not suffice. A violated invariant fails the case, except
/// that a kubelet in which a known bug is fixed may satisfy the invariants of the next version
/// without the bug. A node that runs another kubelet is an `error`.
pub fn judge(case: &Case, kubelet: &KubeletVersion, observations: &Observations) -> CaseResult {
    if observations.kubelet_version.parse().as_ref() != Ok(kubelet) {
        let why = format!("the node runs kubelet {}, expected {kubelet}", observations.kubelet_version);
        let result = CaseResult::without_evidence(Verdict::Error, why);
        return CaseResult { phase: Some(Phase::Judge), ..result };
    }
    let evidence = CaseEvidence::new(case, kubelet, observations);
    let expectation = Expectation::of(case);
    let results = expectation.check(&evidence);
    let mut result = match &results.error {
        Some(why) => undecidable(why.clone(), &results.checks),
        None => judge_evidence(case, &evidence, &expectation, &results),
    };
    let evicted = evidence.pods.iter().filter(|pod| pod.was_evicted());
    result.evictions = evicted.map(PodEvidence::eviction_record).collect();
    result.diff = results.diff;
    if result.verdict == Verdict::Error {
        return result;
    }
    match assertions::rate(case, &evidence) {
        Some(rate) => with_rate(result, rate, &evidence),
        None => result,
    }
}

/// Judges evidence on which every assertion can be evaluated, without the rate.
fn judge_evidence(
    case: &Case,
    evidence: &CaseEvidence<'_>,
    expectation: &Expectation<'_>,
    results: &CheckResults,
) -> CaseResult {
    // An intermittent bug is judged by the rate over all runs.
    let bug = known_bug(case, evidence.kubelet, evidence.observations.cgroup).filter(|bug| !bug.sometimes);
    let invariants = check_invariants(evidence, results, bug);
    let lost_event = inconclusive::lost_event(evidence, &invariants);
    let invariants: Vec<Check> = invariants.into_iter().map(|invariant| invariant.check).collect();
    let decision = Decision { case, evidence, bug };
    // An unexpected eviction fails the case even if its event was lost.
    let is_decided =
        all_hold(&invariants) || lost_event.is_some() && decision.has_unexpected_eviction(expectation);
    let mut result = match lost_event {
        _ if is_decided => decision.decide(expectation, results),
        Some(cause) => decision.inconclusive(cause, &results.checks),
        None => verdict_with(Verdict::Failed, describe_failures(&invariants), &results.checks),
    };
    result.checks.extend(invariants);
    result
}

/// Adds the rate of a run to its result, whose verdict is not `error`.
///
/// A rate that is too costly is an `error`, as an assertion is. A rate without a value fails a case
/// that would be decided otherwise, and missing evidence makes it `inconclusive`. Neither changes
/// `failed` or `inconclusive`: the cause of the latter may be that of the missing value.
fn with_rate(mut result: CaseResult, rate: Result<Rate, Unrated>, evidence: &CaseEvidence<'_>) -> CaseResult {
    let is_success = result.verdict.is_success();
    match rate {
        Ok(rate) => result.rate = Some(rate),
        Err(Unrated::TooCostly(why)) => {
            result = with_verdict(result, Verdict::Error, why);
            result.phase = Some(Phase::Judge);
        }
        Err(Unrated::Lost(cause)) if is_success => {
            let cause = inconclusive::specify(cause, evidence);
            result = with_verdict(result, Verdict::Inconclusive, cause.why);
            result.inconclusive_reason = Some(cause.reason);
        }
        Err(Unrated::Lost(_)) => {}
        Err(Unrated::Failed(check)) => {
            if is_success {
                let why = describe_failures(std::slice::from_ref(&check));
                result = with_verdict(result, Verdict::Failed, why);
            }
            result.checks.insert(0, check);
        }
    }
    result
}

/// Replaces the verdict of a result with all that belongs to it, such as its known bug. The
/// evidence stays.
fn with_verdict(result: CaseResult, verdict: Verdict, why: String) -> CaseResult {
    let CaseResult { checks, evictions, diff, .. } = result;
    CaseResult { checks, evictions, diff, ..CaseResult::without_evidence(verdict, why) }
}

/// Returns the result of a case with an expression that cannot be evaluated.
fn undecidable(why: String, checks: &[Check]) -> CaseResult {
    CaseResult { phase: Some(Phase::Judge), ..verdict_with(Verdict::Error, why, checks) }
}

/// Checks the invariants of the kubelet's version. If the expectation holds although the version
/// has a known bug, the kubelet is patched: it may satisfy the invariants of the next version
/// without the bug instead.
fn check_invariants(
    evidence: &CaseEvidence<'_>,
    results: &CheckResults,
    bug: Option<&KnownBug>,
) -> Vec<InvariantCheck> {
    let none_violated =
        |invariants: &[InvariantCheck]| invariants.iter().all(|invariant| invariant.check.holds);
    let mut invariants = invariants::check_all(evidence, evidence.kubelet);
    if none_violated(&invariants) || !results.hold() {
        return invariants;
    }
    if let Some(bug) = bug {
        let may_violate = |invariant: Invariant| bug.fixed_violates.contains(&invariant);
        invariants.retain(|invariant| invariant.check.holds || !may_violate(invariant.invariant));
    }
    let fixed = bug.and_then(|bug| first_minor_without(bug, evidence.kubelet));
    let invariants_of_fixed = fixed.map(|fixed| invariants::check_all(evidence, &fixed));
    invariants_of_fixed.filter(|invariants| none_violated(invariants)).unwrap_or(invariants)
}

/// Returns the next minor version without the bug.
fn first_minor_without(bug: &KnownBug, kubelet: &KubeletVersion) -> Option<KubeletVersion> {
    const MINORS_SEARCHED: u32 = 20;
    let mut minors = (kubelet.minor + 1..=kubelet.minor + MINORS_SEARCHED).map(KubeletVersion::from_minor);
    minors.find(|later| !bug.kubelet.matches(later))
}

/// Inputs of a decision for which all invariants hold.
struct Decision<'a> {
    case: &'a Case,
    evidence: &'a CaseEvidence<'a>,
    bug: Option<&'a KnownBug>,
}

impl Decision<'_> {
    fn decide(&self, expectation: &Expectation<'_>, results: &CheckResults) -> CaseResult {
        // An eviction that neither the case nor the bug expects is a failure in any case.
        if !self.has_unexpected_eviction(expectation) {
            match inconclusive::trigger_not_observed(self.case, self.evidence) {
                Ok(None) => {}
                Ok(Some(cause)) => return self.inconclusive(cause, &results.checks),
                Err(error) => return undecidable(format!("trigger: {error}"), &results.checks),
            }
        }
        if results.hold() {
            return self.with_expected_outcome(expectation, results);
        }
        let bug_expectation = self.bug.map(|bug| (bug, Expectation::of_bug(self.case, bug)));
        if let Some((bug, expectation)) = &bug_expectation {
            let results = expectation.check(self.evidence);
            if let Some(why) = &results.error {
                return undecidable(why.clone(), &results.checks);
            }
            if results.hold() {
                return self.with_bug_outcome(bug, expectation, &results);
            }
        }
        // A known bug may leave less to observe than the expectation.
        let least = bug_expectation.as_ref().map_or(expectation, |(_, of_bug)| of_bug);
        if let Some(cause) = inconclusive::of_failure(self.case, least, self.evidence) {
            return self.inconclusive(cause, &results.checks);
        }
        let failures = describe_failures(&results.checks);
        let why = match self.bug {
            Some(bug) => format!("{} did not show either: {failures}", bug_label(bug)),
            None => failures,
        };
        verdict_with(Verdict::Failed, why, &results.checks)
    }

    fn with_expected_outcome(&self, expectation: &Expectation<'_>, results: &CheckResults) -> CaseResult {
        if let Some(cause) = self.undecided(results, Stall::IsUndecided) {
            return self.inconclusive(cause, &results.checks);
        }
        let summary = summarize(expectation, self.evidence);
        let Some(bug) = self.bug else { return verdict_with(Verdict::Passed, summary, &results.checks) };
        // The bug may be one of the ranking.
        if let Some(cause) = inconclusive::stale_pod_ranking(self.evidence) {
            return self.inconclusive(cause, &results.checks);
        }
        let why = format!("{} should have shown and did not: {summary}", bug_label(bug));
        let result = verdict_with(Verdict::Fixed, why, &results.checks);
        CaseResult { known_bug: Some(bug_label(bug)), ..result }
    }

    fn with_bug_outcome(
        &self,
        bug: &KnownBug,
        expectation: &Expectation<'_>,
        results: &CheckResults,
    ) -> CaseResult {
        if let Some(cause) = self.undecided(results, Stall::IsAccepted) {
            return self.inconclusive(cause, &results.checks);
        }
        let about = bug.about.as_deref().unwrap_or("It shows as stated.");
        let why = format!("{about} Observed: {}", summarize(expectation, self.evidence));
        let result = verdict_with(Verdict::Reproduced, why, &results.checks);
        CaseResult { known_bug: Some(bug_label(bug)), ..result }
    }

    /// Returns the reason why checks that hold, of the case or of its bug, do not decide the case.
    fn undecided(&self, results: &CheckResults, stall: Stall) -> Option<Inconclusive> {
        let lost = results.evidence_lost.clone();
        let observations = self.evidence.observations;
        lost.or_else(|| self.evidence.undecodable_pod())
            .or_else(|| self.evidence.eviction_without_event())
            .or_else(|| inconclusive::of_pass(self.case, self.evidence))
            .or_else(|| inconclusive::end_not_reached(self.case, observations, stall))
    }

    fn inconclusive(&self, cause: Inconclusive, checks: &[Check]) -> CaseResult {
        let cause = inconclusive::specify(cause, self.evidence);
        let result = verdict_with(Verdict::Inconclusive, cause.why, checks);
        CaseResult { inconclusive_reason: Some(cause.reason), ..result }
    }

    fn has_unexpected_eviction(&self, expectation: &Expectation<'_>) -> bool {
        let evicted_with_bug = self.bug.and_then(|bug| bug.evicted.as_deref()).unwrap_or_default();
        let may_be_evicted = &self.case.expect.may_be_evicted;
        let all = || expectation.evicted().iter().chain(evicted_with_bug).chain(may_be_evicted);
        let pods = &self.evidence.pods;
        pods.iter().any(|pod| pod.was_evicted() && !all().any(|name| name.as_str() == pod.name))
    }
}

fn verdict_with(verdict: Verdict, why: String, checks: &[Check]) -> CaseResult {
    CaseResult { checks: checks.to_vec(), ..CaseResult::without_evidence(verdict, why) }
}

fn all_hold(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.holds)
}

/// Describes the first check that does not hold, and the number of further ones.
fn describe_failures(checks: &[Check]) -> String {
    let mut failures = checks.iter().filter(|check| !check.holds);
    let Some(Check { name, expected, observed, .. }) = failures.next() else { return String::new() };
    let more = match failures.count() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    format!("{name}: expected {expected}, observed {observed}{more}")
}

/// Summarizes in one line the eviction of the first pod that is expected to be evicted.
fn summarize(expectation: &Expectation<'_>, evidence: &CaseEvidence<'_>) -> String {
    let first = expectation.evicted().first().and_then(|name| evidence.pod(name.as_str()));
    let Some(pod) = first.filter(|pod| pod.was_evicted()) else {
        return "the expected outcome was observed".to_owned();
    };
    let source = if pod.events.is_empty() { "its status (the event is missing)" } else { "the event" };
    match pod.message().map(str::parse::<EvictionMessage>) {
        Some(Ok(EvictionMessage::NodePressure(message))) => {
            let names: Vec<_> = message.containers.iter().map(|container| container.name.as_str()).collect();
            let names = if names.is_empty() { "no container".to_owned() } else { names.join(", ") };
            let pod_level = if message.pod.is_some() { "the pod, " } else { "" };
            format!("{} was evicted, and {source} names {pod_level}{names}", pod.name)
        }
        Some(Ok(message)) => format!("{} was evicted: {}", pod.name, message.to_string().trim_end()),
        _ => format!("{} was evicted", pod.name),
    }
}
