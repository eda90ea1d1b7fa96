//! Whether what was said in several places agrees.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::{EvictedEvent, Evidence, Invariant, Outcome, check};
use evictlab_rules::pod::Pod;

use super::explanation::Witness;

/// What is known of one eviction.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub pod: Option<&'a Pod>,
    pub version: Option<&'a KubeletVersion>,
    /// The pod's Evicted events, oldest first.
    pub events: &'a [EvictedEvent],
    /// `status.message`, where `status.reason` is `Evicted`.
    pub status: Option<&'a str>,
    /// The message of the kubelet's `DisruptionTarget` condition.
    pub condition: Option<&'a str>,
}

/// What holds for every eviction, as far as what is known can tell.
pub(super) fn witnesses(said: Said<'_>) -> Vec<Witness> {
    let mut all = Vec::new();
    let Some(first) = said.events.first() else {
        let says = "no Evicted event is in the input; clusters keep events for an hour, unless told otherwise (--event-ttl)";
        let status = said.status.zip(said.condition);
        all.extend(status.map(|(status, condition)| Witness {
            agrees: status == condition,
            says: match status == condition {
                true => "the DisruptionTarget condition repeats the status".to_owned(),
                false => {
                    format!("the DisruptionTarget condition does not repeat the status. It says: {condition}")
                }
            },
        }));
        all.push(Witness { agrees: true, says: says.to_owned() });
        return all;
    };
    let (newest, nobody) = (KubeletVersion::minor(36), Pod::default());
    let evidence = Evidence {
        version: said.version.unwrap_or(&newest),
        pod: said.pod.unwrap_or(&nobody),
        event: first,
        events: said.events,
        status: said.status,
        condition: said.condition,
        thresholds: &[],
        samples: &[],
    };
    let findings = check(&evidence).into_iter().filter(|finding| {
        finding.outcome != Outcome::Unproven
            && (said.pod.is_some() || !needs_pod(finding.invariant))
            && (said.version.is_some() || !needs_version(finding.invariant))
    });
    all.extend(findings.filter_map(|finding| {
        let agrees = finding.outcome == Outcome::Holds;
        let holds = in_words(finding.invariant)?;
        let says = match agrees {
            true => holds.to_owned(),
            false => format!("not so: {holds}. Expected {}, observed {}", finding.expected, finding.observed),
        };
        Some(Witness { agrees, says })
    }));
    // One finding for each container says the same of each.
    all.dedup();
    if said.events.len() > 1 {
        let count = said.events.len();
        let says = format!(
            "{count} Evicted events within a few seconds: with kernelMemcgNotification (cgroup v1) the kubelet looks again before the pod is gone, and \
             says what it sees then"
        );
        all.push(Witness { agrees: true, says });
    }
    all
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
            | Invariant::LimitIsThePods
    )
}

/// What holds, for a person; none for what the rest of an explanation says.
fn in_words(invariant: Invariant) -> Option<&'static str> {
    Some(match invariant {
        Invariant::MessageIsKnown | Invariant::ThresholdIsConfigured | Invariant::UsageIsInTheSummary => {
            return None;
        }
        Invariant::StatusRepeatsAnEvent => "the pod's status repeats the event",
        Invariant::ConditionRepeatsTheStatus => "the DisruptionTarget condition repeats it, too",
        Invariant::AnnotationsMatchTheMessage => {
            "the event's annotations name the same containers with the same figures as its message"
        }
        Invariant::OffendersAreCandidates => "only containers are named that this kubelet looks at",
        Invariant::UsageExceedsRequest => {
            "whoever is named uses more than the request that the message gives"
        }
        Invariant::RequestIsThePods => "the requests in the message are the pod's",
        Invariant::OffendersAreComplete => "nobody is left out",
        Invariant::PodSentenceFollowsTheVersion => "the pod as a whole is named where this kubelet does so",
        Invariant::AvailableIsBelowTheThreshold => "less was left than the threshold wants",
        Invariant::LimitIsThePods => "the limit in the message is the pod's",
        Invariant::NoPressureNoAnnotations => {
            "there are no annotations and no DisruptionTarget, as the node was not short of anything"
        }
    })
}
