//! Event, status and condition say the same.

use super::{EvictedEvent, Evidence, Finding, Invariant};

pub(super) fn check(evidence: &Evidence<'_>) -> Vec<Finding> {
    let Evidence { events, status, condition, .. } = evidence;
    let one_of = |invariant, said: &str| {
        let holds = events.iter().any(|event| event.message == said);
        let all: Vec<_> = events.iter().map(|EvictedEvent { message, .. }| format!("{message:?}")).collect();
        Finding::of(invariant, holds, all.join(" or "), format!("{said:?}"))
    };
    let mut findings = vec![];
    if let Some(status) = status {
        findings.push(one_of(Invariant::StatusRepeatsAnEvent, status));
    }
    if let Some(condition) = condition {
        let invariant = Invariant::ConditionRepeatsTheStatus;
        findings.push(match status {
            Some(status) => {
                Finding::of(invariant, status == condition, format!("{status:?}"), format!("{condition:?}"))
            }
            None => one_of(invariant, condition),
        });
    }
    findings
}
