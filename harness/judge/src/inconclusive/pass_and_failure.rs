//! The orders in which reasons are looked for: of a pass, of a failure, and of a case that did not
//! reach its trigger or end.

use evictlab_rules::EvictedEvent;
use evictlab_rules::message::EvictionMessage;
use evictlab_rules::threshold::{Observation, Resource, Signal, Threshold};

use crate::case_evidence::CaseEvidence;
use crate::check::Expectation;
use crate::deletion::deleted_externally;
use crate::inconclusive::disk_reclaim::{pressure_ended, reclaim_pending};
use crate::inconclusive::killed_or_not_started::{killed_before_eviction, never_started};
use crate::inconclusive::missing_statistics::{
    is_to_be_rejected, missing_statistics, unlisted_pod, unmeasured_victim,
};
use crate::inconclusive::stale_disk_ranking::stale_disk_ranking;
use crate::inconclusive::stale_statistics::{stale_container_stats, stale_pod_ranking};
use crate::verdict::{Inconclusive, InconclusiveReason};
use evictlab_case as case;
use evictlab_case::Case;
use evictlab_case::expression::ExpressionError;
use evictlab_evidence::{ObservationEnd, Observations, Scope};

/// Meaning of an observation that ended because nothing changed any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stall {
    /// The end condition may still have held later.
    IsUndecided,
    /// A stalled case is an accepted end: the known bug is that nothing happens.
    IsAccepted,
}

/// Returns the reason why an expectation that holds does not decide the case.
pub(crate) fn of_pass(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    deleted_externally(case, evidence)
        .or_else(|| without_pressure(case, evidence))
        .or_else(|| without_start(case, evidence))
}

/// Returns the reason why an observation that ended early does not decide the case, although no
/// check failed.
pub(crate) fn end_not_reached(
    case: &Case,
    observations: &Observations,
    stall: Stall,
) -> Option<Inconclusive> {
    let not_reached = |why: String| Inconclusive::new(InconclusiveReason::EndNotReached, why);
    if let Some(step) = &observations.stopped_at {
        return Some(not_reached(format!("a step of the case was not done in time: {step}")));
    }
    let end = observations.ended.as_ref()?;
    let is_accepted = stall == Stall::IsAccepted && !matches!(end, ObservationEnd::Deadline(_));
    let why = end.describe_failure().filter(|_| !is_accepted)?;
    Some(not_reached(match &case.until {
        Some(until) => format!("the end condition never held: {until}; {why}"),
        None => format!("the case ended before its outcome was complete: {why}"),
    }))
}

/// Returns the reason why a case whose trigger was never observed is not decided: the cause, if a
/// pod did not run at all.
///
/// # Errors
/// The trigger exceeds the cost limit, or cannot be compiled.
pub(crate) fn trigger_not_observed(
    case: &Case,
    evidence: &CaseEvidence<'_>,
) -> Result<Option<Inconclusive>, ExpressionError> {
    let Some(trigger) = &case.trigger else { return Ok(None) };
    let observations = evidence.observations;
    if observations.trigger_observed || trigger.holds(&Scope::of(observations))? {
        return Ok(None);
    }
    let without_trigger = || {
        let why = format!("the trigger of the case was never observed: {trigger}");
        Inconclusive::new(InconclusiveReason::TriggerNotObserved, why)
    };
    let cause = not_admitted(case, evidence).or_else(|| evidence.pods.iter().find_map(never_started));
    Ok(Some(cause.unwrap_or_else(without_trigger)))
}

/// Returns the reason why a case that waits for nothing is not decided: a pod that did not run
/// could not be evicted.
fn without_start(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    if !case.waits_for_nothing() {
        return None;
    }
    evidence.pods.iter().find_map(never_started)
}

/// Returns the reason why a case with pressure does not have a verdict: no evidence of pressure.
fn without_pressure(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let pressure = case.pressure.as_ref()?;
    if evidence.samples.is_empty() {
        return Some(evidence.no_sample("the node returned no Summary"));
    }
    // A reservation limits the pods' cgroup and does not set a threshold.
    if pressure.by == case::PressureMechanism::KubeReserved {
        return None;
    }
    let mut evicted = evidence.pods.iter().filter(|pod| pod.was_evicted()).peekable();
    if evicted.peek().is_some() {
        evicted
            .filter(|pod| !is_to_be_rejected(case, &pod.name))
            .find_map(|pod| missing_statistics(pod, evidence))
    } else if has_pressure_eviction(pressure.signal.resource(), evidence) {
        // The eviction of a controller's pod may have ended the pressure between two samples.
        None
    } else {
        threshold_not_reached(pressure.signal.eviction_signal(), evidence)
    }
}

/// Returns a reason outside of the kubelet that explains why an expectation does not hold.
pub(crate) fn of_failure(
    case: &Case,
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let pods = || evidence.pods.iter();
    // A case without evictions may be about the OOM kill itself.
    let expects_eviction =
        (case.pressure.is_some() || !expectation.evicted().is_empty()) && case.expect.oom_killed.is_none();
    let expected = || expectation.evicted().iter().filter_map(|name| evidence.pod(name.as_str()));
    evidence
        .undecodable_pod()
        .or_else(|| not_admitted(case, evidence))
        .or_else(|| deleted_externally(case, evidence))
        // Before `never_started`: an OOM-killed container may wait for its next start.
        .or_else(|| pods().filter(|_| expects_eviction).find_map(killed_before_eviction))
        .or_else(|| pods().find_map(never_started))
        .or_else(|| of_pass(case, evidence))
        .or_else(|| other_threshold_not_reached(case, evidence))
        .or_else(|| expected().find_map(|pod| missing_statistics(pod, evidence)))
        .or_else(|| unmeasured_victim(case, evidence))
        .or_else(|| stale_container_stats(expectation, evidence))
        .or_else(|| stale_pod_ranking(evidence))
        .or_else(|| stale_disk_ranking(expectation, evidence))
        .or_else(|| reclaim_pending(expectation, evidence))
        .or_else(|| pressure_ended(case, expectation, evidence))
        .or_else(|| unlisted_pod(case, evidence))
}

/// Finds a pod that the kubelet rejected, in a case that is not about admission.
fn not_admitted(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let mut pods = evidence.pods.iter().filter(|_| case.expect.rejected.is_none());
    pods.find_map(|pod| {
        let cause = pod.admission_rejection.as_ref()?.trim_end();
        let why = format!("the kubelet did not admit {}: {cause}", pod.name);
        Some(Inconclusive::new(InconclusiveReason::RejectedAtAdmission, why))
    })
}

/// Returns whether the kubelet evicted any pod because the node was low on the resource.
fn has_pressure_eviction(resource: Resource, evidence: &CaseEvidence<'_>) -> bool {
    let is_of_resource = |event: &EvictedEvent| {
        let message = event.message.parse::<EvictionMessage>();
        message.is_ok_and(|message| message.node_pressure().is_some_and(|one| one.resource == resource))
    };
    evidence.evictions.iter().any(is_of_resource)
}

/// Returns that another signal of the case's pressure never fell below its threshold, in a case
/// that timed out, as when another program freed disk. A case that ended for another reason, such
/// as an unexpected eviction, may end before that signal falls.
fn other_threshold_not_reached(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let pressure = case.pressure.as_ref()?;
    match evidence.observations.ended.as_ref()? {
        ObservationEnd::Stalled | ObservationEnd::Deadline(_) => {}
        ObservationEnd::Outcome
        | ObservationEnd::Died(_)
        | ObservationEnd::Unexpected(_)
        | ObservationEnd::Stuck => return None,
    }
    pressure.also.keys().find_map(|signal| threshold_not_reached(signal.eviction_signal(), evidence))
}

fn threshold_not_reached(signal: Signal, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let thresholds: Vec<&Threshold> =
        evidence.thresholds.iter().filter(|threshold| threshold.signal == signal).collect();
    if thresholds.is_empty() {
        return Some(Inconclusive::evidence_lost(format!("the node's threshold on {signal} is not known")));
    }
    let samples = &evidence.samples;
    let observed = || samples.iter().filter_map(|sample| Observation::from_node_stats(signal, &sample.node));
    let is_met = |observation| thresholds.iter().any(|threshold| threshold.is_met(&observation, false));
    if observed().any(is_met) {
        return None;
    }
    let values: Vec<_> = thresholds.iter().map(|threshold| threshold.value.to_string()).collect();
    let values = values.join(" and ");
    Some(match observed().map(|observation| observation.available).min() {
        Some(least) => {
            let count = samples.len();
            let why = format!("{signal} never fell below {values}: the least of {count} samples is {least}");
            Inconclusive::new(InconclusiveReason::ThresholdNotReached, why)
        }
        None => evidence.no_sample(&format!("no sample has {signal}")),
    })
}
