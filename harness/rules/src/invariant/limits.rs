//! Evictions without node pressure.

use super::{Evidence, Finding, Invariant};
use crate::message::{EvictionMessage, enforced};
use crate::quantity::Quantity;

pub(super) fn check(evidence: &Evidence<'_>, message: &EvictionMessage) -> Vec<Finding> {
    let Evidence { version, pod, event, condition, .. } = evidence;
    let mut findings = vec![];
    let mut limit = |own: Option<&Quantity>, given: &Quantity, of: String| {
        let own = own.map(Quantity::to_string);
        let holds = own.as_deref() == Some(given.to_string().as_str());
        let expected = own.unwrap_or_else(|| "no enforced limit".to_owned());
        findings.push(Finding::of(
            Invariant::LimitIsThePods,
            holds,
            format!("{of}: {expected}"),
            format!("{of}: {given}"),
        ));
    };
    match message {
        EvictionMessage::EmptyDirLimit { volume, limit: given } => {
            let own = pod.spec.volumes.iter().find(|own| own.name == *volume);
            let own = own.and_then(|own| own.empty_dir.as_ref()?.size_limit.as_ref());
            limit(own, given, format!("volume {volume}"));
        }
        EvictionMessage::PodLimit { limit: given } => {
            limit(pod.storage_limit(version).as_ref(), given, "all containers".to_owned());
        }
        EvictionMessage::ContainerLimit { container, limit: given } => {
            let own = enforced(version, pod).find(|own| own.name == *container);
            let own = own.and_then(|own| own.resources.limits.get("ephemeral-storage"));
            limit(own, given, format!("container {container}"));
        }
        EvictionMessage::NodePressure(_) | EvictionMessage::Rejected { .. } => {}
    }
    let bare = event.annotations.is_empty() && condition.is_none();
    let observed = match (event.annotations.is_empty(), condition) {
        (true, None) => "neither".to_owned(),
        (true, Some(condition)) => format!("the condition {condition:?}"),
        (false, _) => format!("the annotations {:?}", event.annotations),
    };
    let expected = "neither annotations nor DisruptionTarget".to_owned();
    findings.push(Finding::of(Invariant::NoPressureNoAnnotations, bare, expected, observed));
    findings
}
