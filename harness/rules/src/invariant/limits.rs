//! Invariants of evictions without node pressure.

use super::{EventEvidence, Finding, Invariant};
use crate::message::{EvictionMessage, containers_with_enforced_limit};
use crate::quantity::Quantity;

pub(super) fn check(evidence: &EventEvidence<'_>, message: &EvictionMessage) -> Vec<Finding> {
    let mut findings: Vec<_> = check_limit(evidence, message).into_iter().collect();
    findings.push(check_absence(evidence));
    findings
}

/// Compares the limit in the message with the pod's; `None` for messages without a limit.
fn check_limit(evidence: &EventEvidence<'_>, message: &EvictionMessage) -> Option<Finding> {
    let EventEvidence { version, pod, .. } = evidence;
    let (subject, expected, observed) = match message {
        EvictionMessage::EmptyDirLimit { volume, limit } => {
            let spec = pod.spec.volumes.iter().find(|spec| spec.name == *volume);
            let own = spec.and_then(|spec| spec.empty_dir.as_ref()?.size_limit.clone());
            (format!("volume {volume}"), own, limit)
        }
        EvictionMessage::PodLimit { limit } => {
            ("all containers".to_owned(), pod.storage_limit(version), limit)
        }
        EvictionMessage::ContainerLimit { container, limit } => {
            let spec = containers_with_enforced_limit(version, pod).find(|spec| spec.name == *container);
            let own = spec.and_then(|spec| spec.resources.limits.get("ephemeral-storage").cloned());
            (format!("container {container}"), own, limit)
        }
        EvictionMessage::NodePressure(_) | EvictionMessage::Rejected { .. } => return None,
    };
    let expected = expected.as_ref().map(Quantity::to_string);
    let holds = expected.as_deref() == Some(observed.to_string().as_str());
    let expected = expected.unwrap_or_else(|| "no enforced limit".to_owned());
    Some(Finding::proven(
        Invariant::LimitMatchesSpec,
        holds,
        format!("{subject}: {expected}"),
        format!("{subject}: {observed}"),
    ))
}

/// Checks that neither annotations nor a `DisruptionTarget` condition exist.
fn check_absence(evidence: &EventEvidence<'_>) -> Finding {
    let EventEvidence { event, condition, .. } = evidence;
    let absent = event.annotations.is_empty() && condition.is_none();
    let observed = match (event.annotations.is_empty(), condition) {
        (true, None) => "neither".to_owned(),
        (true, Some(condition)) => format!("the condition {condition:?}"),
        (false, None) => format!("the annotations {:?}", event.annotations),
        (false, Some(condition)) => {
            format!("the annotations {:?} and the condition {condition:?}", event.annotations)
        }
    };
    let expected = "neither annotations nor DisruptionTarget".to_owned();
    Finding::proven(Invariant::NoPressureNoAnnotations, absent, expected, observed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::EvictedEvent;
    use crate::KubeletVersion;
    use crate::pod::Pod;

    #[test]
    fn a_finding_names_everything_that_must_be_absent() {
        let observed = |has_annotations: bool, condition: Option<&str>| {
            let annotations = [("starved_resource".to_owned(), "memory".to_owned())];
            let event = EvictedEvent {
                pod: "web".to_owned(),
                namespace: "shop".to_owned(),
                uid: "1".to_owned(),
                message: String::new(),
                annotations: BTreeMap::from_iter(annotations.into_iter().filter(|_| has_annotations)),
                at: None,
            };
            let evidence = EventEvidence {
                version: &KubeletVersion::from_minor(36),
                pod: &Pod::default(),
                event: &event,
                events: &[],
                status: None,
                condition,
                exceeded_grace: None,
                thresholds: &[],
                samples: &[],
            };
            check_absence(&evidence).observed
        };
        assert_eq!(observed(false, None), "neither");
        for (has_annotations, condition) in [(true, None), (false, Some("low")), (true, Some("low"))] {
            let text = observed(has_annotations, condition);
            assert_eq!(text.contains("starved_resource"), has_annotations, "{text}");
            assert_eq!(text.contains("the condition \"low\""), condition.is_some(), "{text}");
        }
    }
}
