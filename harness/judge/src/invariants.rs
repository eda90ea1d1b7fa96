//! The invariants of the eviction rules, checked on every Evicted event of a case.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::{EventEvidence, Finding, Invariant, InvariantOutcome, check};

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::case_result::Check;

/// The check of one invariant on one event.
pub(crate) struct InvariantCheck {
    pub(crate) invariant: Invariant,
    /// Name of the evicted pod.
    pub(crate) pod: String,
    pub(crate) check: Check,
}

/// Checks every invariant of this kubelet on every event. A check holds unless the invariant is
/// violated; an unproven invariant holds. A pod that the rules cannot read is not checked.
pub(crate) fn check_all(evidence: &CaseEvidence<'_>, kubelet: &KubeletVersion) -> Vec<InvariantCheck> {
    let pods = evidence.pods.iter().filter(|pod| pod.undecodable.is_none());
    pods.flat_map(|pod| check_pod(evidence, kubelet, pod)).collect()
}

fn check_pod(
    evidence: &CaseEvidence<'_>,
    kubelet: &KubeletVersion,
    pod: &PodEvidence<'_>,
) -> Vec<InvariantCheck> {
    let mut checks = vec![];
    for (index, event) in pod.events.iter().enumerate() {
        let findings = check(&EventEvidence {
            version: kubelet,
            pod: &pod.pod,
            event,
            events: &pod.events,
            status: pod.status,
            condition: pod.condition,
            exceeded_grace: pod.exceeded_grace,
            thresholds: &evidence.thresholds,
            samples: &evidence.samples,
        });
        // Containers terminate between two events: a later event must only be consistent in itself.
        let findings =
            findings.into_iter().filter(|finding| index == 0 || is_about_event_alone(finding.invariant));
        let suffix = if index == 0 { String::new() } else { format!(", event {}", index + 1) };
        let mut by_invariant: Vec<(Invariant, Vec<Finding>)> = vec![];
        for finding in findings {
            match by_invariant.iter_mut().find(|(invariant, _)| *invariant == finding.invariant) {
                Some((_, group)) => group.push(finding),
                None => by_invariant.push((finding.invariant, vec![finding])),
            }
        }
        checks.extend(by_invariant.into_iter().map(|(invariant, findings)| InvariantCheck {
            invariant,
            pod: pod.name.clone(),
            check: combine(format!("{invariant} ({}{suffix})", pod.name), findings),
        }));
    }
    checks
}

/// Returns whether an invariant compares parts of one event, not an event with other evidence.
fn is_about_event_alone(invariant: Invariant) -> bool {
    !matches!(
        invariant,
        Invariant::StatusRepeatsAnEvent
            | Invariant::ConditionRepeatsTheStatus
            | Invariant::KillIsAwaited
            | Invariant::OffendersAreComplete
            | Invariant::UsageIsInTheSummary
    )
}

/// Combines the findings of one invariant on one event. A check that does not hold lists the
/// violations only.
fn combine(name: String, mut findings: Vec<Finding>) -> Check {
    let holds = findings.iter().all(|finding| finding.outcome != InvariantOutcome::Violated);
    if !holds {
        findings.retain(|finding| finding.outcome == InvariantOutcome::Violated);
    }
    let observed = |finding: &Finding| match finding.outcome {
        InvariantOutcome::Unproven => format!("{} (unproven)", finding.observed),
        InvariantOutcome::Holds | InvariantOutcome::Violated => finding.observed.clone(),
    };
    Check {
        name,
        holds,
        expected: findings.iter().map(|finding| finding.expected.clone()).collect::<Vec<_>>().join("; "),
        observed: findings.iter().map(observed).collect::<Vec<_>>().join("; "),
    }
}
