//! Checks all invariants on one event.

use jiff::SignedDuration;

use super::{EventEvidence, Finding, Invariant, limits, pressure};
use crate::message::EvictionMessage;
use crate::{EvictedEvent, KubeletVersion};

/// Checks all invariants that apply to the event. Equal evidence gives equal findings.
pub fn check(evidence: &EventEvidence<'_>) -> Vec<Finding> {
    let message = evidence.event.message.parse::<EvictionMessage>();
    let observed = match &message {
        Ok(_) => evidence.event.message.clone(),
        Err(error) => error.to_string(),
    };
    let expected = format!("a message of kubelets 1.26 to 1.{}", KubeletVersion::NEWEST_MINOR);
    let mut findings = vec![Finding::proven(Invariant::MessageIsKnown, message.is_ok(), expected, observed)];
    findings.extend(check_status(evidence));
    findings.extend(check_condition(evidence));
    findings.extend(check_wait(evidence));
    match &message {
        Ok(EvictionMessage::NodePressure(message)) => findings.extend(pressure::check(evidence, message)),
        Ok(message) => findings.extend(limits::check(evidence, message)),
        Err(_) => {}
    }
    findings
}

fn check_status(evidence: &EventEvidence<'_>) -> Option<Finding> {
    let status = evidence.status?;
    Some(repeats_an_event(Invariant::StatusRepeatsAnEvent, status, evidence.events))
}

fn check_condition(evidence: &EventEvidence<'_>) -> Option<Finding> {
    let invariant = Invariant::ConditionRepeatsTheStatus;
    let condition = evidence.condition?;
    let Some(status) = evidence.status else {
        return Some(repeats_an_event(invariant, condition, evidence.events));
    };
    let holds = status == condition;
    Some(Finding::proven(invariant, holds, format!("{status:?}"), format!("{condition:?}")))
}

/// Checks the time between the first Evicted event, which precedes the kill, and
/// ExceededGracePeriod; `None` without the time of the Evicted event.
fn check_wait(evidence: &EventEvidence<'_>) -> Option<Finding> {
    // Of 10 s, as timestamps may be rounded down to seconds.
    const MIN_WAIT: SignedDuration = SignedDuration::from_secs(8);
    let evicted = evidence.events.iter().filter_map(|event| event.at).min()?;
    let wait = evidence.exceeded_grace.map(|exceeded| exceeded.duration_since(evicted));
    let observed =
        wait.map_or_else(|| "no such event".to_owned(), |wait| format!("after {:.1}s", wait.as_secs_f64()));
    let holds = wait.is_none_or(|wait| wait >= MIN_WAIT);
    let expected = "ExceededGracePeriod not within 10s of the Evicted event".to_owned();
    Some(Finding::proven(Invariant::KillIsAwaited, holds, expected, observed))
}

/// Checks that `message` is the message of an event.
fn repeats_an_event(invariant: Invariant, message: &str, events: &[EvictedEvent]) -> Finding {
    let holds = events.iter().any(|event| event.message == message);
    let expected: Vec<_> = events.iter().map(|event| format!("{:?}", event.message)).collect();
    Finding::proven(invariant, holds, expected.join(" or "), format!("{message:?}"))
}
