//! Evicted events that are missing.

use evictlab_rules::invariant::Invariant;

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::invariants::InvariantCheck;
use crate::verdict::{Inconclusive, InconclusiveReason};

/// Returns the lost event that explains why a status does not repeat an event: the status and the
/// condition of the pod agree, and the kubelet counted more evictions than events were delivered.
/// `None` if another invariant is violated.
pub(crate) fn lost_event(evidence: &CaseEvidence<'_>, invariants: &[InvariantCheck]) -> Option<Inconclusive> {
    let is_confirmed = |name: &str| {
        evidence.pod(name).is_some_and(|pod| pod.status.is_some() && pod.status == pod.condition)
    };
    let is_explained = |violated: &InvariantCheck| {
        violated.invariant == Invariant::StatusRepeatsAnEvent && is_confirmed(&violated.pod)
    };
    let delivered: usize = evidence.pods.iter().map(|pod| pod.events.len()).sum();
    let counted: u64 = evidence.observations.evictions_counted.values().sum();
    let violated: Vec<_> = invariants.iter().filter(|invariant| !invariant.check.holds).collect();
    let first = violated.first()?;
    if !violated.iter().all(|violated| is_explained(violated)) || counted <= delivered as u64 {
        return None;
    }
    Some(Inconclusive::evidence_lost(format!(
        "an Evicted event of {} was lost: its status and condition agree, and {counted} evictions were counted \
         for {delivered} events",
        first.pod
    )))
}

/// Replaces `evidence-lost` by `event-missing` if a later event about the same pod arrived, or if
/// the missing event is that of a rejection.
pub(crate) fn specify(cause: Inconclusive, evidence: &CaseEvidence<'_>) -> Inconclusive {
    let is_stated = |pod: &PodEvidence<'_>| cause.pod_without_event.as_ref() == Some(&pod.name);
    let is_missing = |pod: &PodEvidence<'_>| {
        is_stated(pod) && (pod.lacks_event() && pod.was_killed || pod.lacks_rejection_event)
    };
    let is_complete = evidence.observations.missing.is_empty();
    let is_specific = cause.reason == InconclusiveReason::EvidenceLost
        && is_complete
        && evidence.pods.iter().any(is_missing);
    let reason = if is_specific { InconclusiveReason::EventMissing } else { cause.reason };
    Inconclusive { reason, ..cause }
}
