//! Consistency of the records of an eviction: event, status, condition, and annotations.

use evictlab_rules::invariant::{EventEvidence, Invariant, InvariantOutcome, check};
use evictlab_rules::pod::Pod;
use evictlab_rules::{EvictedEvent, KubeletVersion};

use crate::explanation::ConsistencyCheck;

/// The records of one eviction.
#[derive(Clone, Copy)]
pub(crate) struct EvictionEvidence<'a> {
    pub pod: Option<&'a Pod>,
    pub version: Option<&'a KubeletVersion>,
    /// Evicted events of the pod, oldest first.
    pub events: &'a [EvictedEvent],
    /// `status.message` if `status.reason` is `Evicted`.
    pub status: Option<&'a str>,
    /// Message of the kubelet's `DisruptionTarget` condition.
    pub condition: Option<&'a str>,
}

/// Checks the invariants of evictions that the available records can prove or disprove.
pub(crate) fn check_consistency(records: EvictionEvidence<'_>) -> Vec<ConsistencyCheck> {
    let Some(first) = records.events.first() else { return check_without_event(records) };
    let (latest, empty) = (KubeletVersion::from_minor(KubeletVersion::NEWEST_MINOR), Pod::default());
    let evidence = EventEvidence {
        version: records.version.unwrap_or(&latest),
        pod: records.pod.unwrap_or(&empty),
        event: first,
        events: records.events,
        status: records.status,
        condition: records.condition,
        exceeded_grace: None,
        thresholds: &[],
        samples: &[],
    };
    let findings = check(&evidence).into_iter().filter(|finding| {
        finding.outcome != InvariantOutcome::Unproven
            && !(finding.outcome == InvariantOutcome::Violated && needs_thresholds(finding.invariant))
            && (records.pod.is_some() || !needs_pod(finding.invariant))
            && (records.version.is_some() || !needs_version(finding.invariant))
    });
    let mut checks: Vec<ConsistencyCheck> = findings
        .filter_map(|finding| {
            let agrees = finding.outcome == InvariantOutcome::Holds;
            let description = describe(finding.invariant)?;
            let text = if agrees {
                description.to_owned()
            } else {
                format!(
                    "violated: {description}; expected {}, observed {}",
                    finding.expected, finding.observed
                )
            };
            Some(ConsistencyCheck { agrees, text })
        })
        .collect();
    // Each container has a finding, with the same text.
    checks.dedup();
    if records.events.len() > 1 {
        let text = format!(
            "{} Evicted events within seconds: with kernelMemcgNotification (cgroup v1) the kubelet \
             evaluates thresholds again before the pod has terminated, and reports the new values",
            records.events.len()
        );
        checks.push(ConsistencyCheck { agrees: true, text });
    }
    checks
}

fn check_without_event(records: EvictionEvidence<'_>) -> Vec<ConsistencyCheck> {
    let mut checks = Vec::new();
    if let Some((status, condition)) = records.status.zip(records.condition) {
        let agrees = status == condition;
        let text = if agrees {
            "the DisruptionTarget condition repeats the status message".to_owned()
        } else {
            format!("the DisruptionTarget condition differs from the status message: {condition}")
        };
        checks.push(ConsistencyCheck { agrees, text });
    }
    let text = "the input contains no Evicted event; clusters keep events for one hour by default \
                (--event-ttl)";
    checks.push(ConsistencyCheck { agrees: true, text: text.to_owned() });
    checks
}

fn needs_pod(invariant: Invariant) -> bool {
    !matches!(
        invariant,
        Invariant::MessageIsKnown
            | Invariant::AnnotationsMatchTheMessage
            | Invariant::UsageExceedsRequest
            | Invariant::AvailableIsBelowTheThreshold
            | Invariant::NoPressureNoAnnotations
    )
}

fn needs_version(invariant: Invariant) -> bool {
    matches!(
        invariant,
        Invariant::OffendersAreCandidates
            | Invariant::OffendersAreComplete
            | Invariant::PodSentenceFollowsTheVersion
            | Invariant::LimitMatchesSpec
    )
}

/// Returns whether only the configured thresholds can disprove the invariant: with
/// `evictionMinimumReclaim`, the available amount may be above the threshold. The reason for the
/// eviction states this.
fn needs_thresholds(invariant: Invariant) -> bool {
    invariant == Invariant::AvailableIsBelowTheThreshold
}

/// Describes an invariant; `None` for invariants that other parts of an explanation cover.
fn describe(invariant: Invariant) -> Option<&'static str> {
    Some(match invariant {
        Invariant::MessageIsKnown
        | Invariant::ThresholdIsConfigured
        | Invariant::UsageIsInTheSummary
        | Invariant::KillIsAwaited => {
            return None;
        }
        Invariant::StatusRepeatsAnEvent => "the pod's status message repeats the event",
        Invariant::ConditionRepeatsTheStatus => "the DisruptionTarget condition repeats the status message",
        Invariant::AnnotationsMatchTheMessage => {
            "the event's annotations name the same containers and usages as its message"
        }
        Invariant::OffendersAreCandidates => "the message names only containers that this kubelet considers",
        Invariant::UsageExceedsRequest => "the usage of each named container exceeds its request",
        Invariant::RequestMatchesSpec => "the requests in the message are those of the pod",
        Invariant::OffendersAreComplete => "the message omits no container",
        Invariant::PodSentenceFollowsTheVersion => {
            "the message names the pod if and only if this kubelet version does"
        }
        Invariant::AmountsAreCanonical => "amounts are printed as the kubelet prints them",
        Invariant::AvailableIsBelowTheThreshold => "the available amount is below the threshold",
        Invariant::LimitMatchesSpec => "the limit in the message is that of the pod",
        Invariant::NoPressureNoAnnotations => {
            "without node pressure there are no annotations and no DisruptionTarget condition"
        }
    })
}
