//! The rules' invariants, checked on every Evicted event of the case.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::{Evidence, Finding, Invariant, Outcome, check};

use super::Check;
use super::seen::{PodSeen, Seen};

/// Every invariant of this kubelet on every event: whether each holds or at least is not violated.
pub(super) fn checks(seen: &Seen<'_>, kubelet: &KubeletVersion) -> Vec<Check> {
    seen.pods.iter().flat_map(|pod| of_pod(seen, kubelet, pod)).collect()
}

fn of_pod(seen: &Seen<'_>, kubelet: &KubeletVersion, pod: &PodSeen<'_>) -> Vec<Check> {
    let mut checks = vec![];
    for (index, event) in pod.events.iter().enumerate() {
        let findings = check(&Evidence {
            version: kubelet,
            pod: &pod.pod,
            event,
            events: &pod.events,
            status: pod.status,
            condition: pod.condition,
            thresholds: &seen.thresholds,
            samples: &seen.samples,
        });
        // Containers die between one event and the next: a later one need only agree with itself.
        let asked = findings.into_iter().filter(|it| index == 0 || agrees_with_itself(it.invariant));
        let which = if index == 0 { String::new() } else { format!(", event {}", index + 1) };
        let mut by_name: Vec<(Invariant, Vec<Finding>)> = vec![];
        for finding in asked {
            match by_name.iter_mut().find(|(name, _)| *name == finding.invariant) {
                Some((_, of_one)) => of_one.push(finding),
                None => by_name.push((finding.invariant, vec![finding])),
            }
        }
        checks.extend(
            by_name
                .into_iter()
                .map(|(name, findings)| summed(format!("{name} ({}{which})", pod.name), findings)),
        );
    }
    checks
}

fn agrees_with_itself(invariant: Invariant) -> bool {
    !matches!(
        invariant,
        Invariant::StatusRepeatsAnEvent
            | Invariant::ConditionRepeatsTheStatus
            | Invariant::OffendersAreComplete
            | Invariant::UsageIsInTheSummary
    )
}

/// One check for all that an invariant found of one event: only the violations where there are any.
fn summed(name: String, mut findings: Vec<Finding>) -> Check {
    let holds = findings.iter().all(|finding| finding.outcome != Outcome::Violated);
    if !holds {
        findings.retain(|finding| finding.outcome == Outcome::Violated);
    }
    let observed = |finding: &Finding| match finding.outcome {
        Outcome::Unproven => format!("{} (unproven)", finding.observed),
        _ => finding.observed.clone(),
    };
    Check {
        name,
        holds,
        expected: findings.iter().map(|finding| finding.expected.clone()).collect::<Vec<_>>().join("; "),
        observed: findings.iter().map(observed).collect::<Vec<_>>().join("; "),
    }
}
