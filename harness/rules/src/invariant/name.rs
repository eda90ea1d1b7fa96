//! The names of the invariants, which are stable.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that holds for every eviction. File names are of `pkg/kubelet/eviction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invariant {
    /// The event's message is one of the forms of 1.26 to 1.36. Source: the const block of `helpers.go`.
    MessageIsKnown,
    /// `status.message` is the message of one of the pod's Evicted events, byte for byte. Source: `evictPod` in
    /// `eviction_manager.go` hands the same string to both; with several events, `pod_workers.go` applies one status.
    StatusRepeatsAnEvent,
    /// The `DisruptionTarget` condition repeats `status.message`, or an event where there is no such status. Source:
    /// `synchronize` in `eviction_manager.go` makes the condition from the same string.
    ConditionRepeatsTheStatus,
    /// The annotations name the message's offenders with their figures, in its order, or are missing with them.
    /// Source: `evictionMessage` in `helpers.go` builds both in one loop.
    AnnotationsMatchTheMessage,
    /// Only containers that this kubelet looks at are named, each once: regular ones, from 1.32 init containers and
    /// sidecars too, ephemeral ones never. Source: `evictionMessage`, kubernetes/kubernetes#124947.
    OffendersAreCandidates,
    /// Who is named uses more than the request given. Source: the comparison in `evictionMessage`.
    UsageExceedsRequest,
    /// The request given is the container's, as it prints; `0` where it has none. Source: `evictionMessage`.
    RequestIsThePods,
    /// Every candidate that was over its request is named. Source: `evictionMessage`. Proven wrong only by samples
    /// from before and after the event that leave no way for the container to have been within its request.
    OffendersAreComplete,
    /// The pod-level sentence is there exactly where the pod has a pod-level memory request, from 1.34 on, and gives
    /// that request. Source: `evictionMessage`, gate `PodLevelResources`.
    PodSentenceFollowsTheVersion,
    /// Less was left than the threshold wants; exactly as much is enough. Source: `thresholdMet` in `helpers.go`.
    AvailableIsBelowTheThreshold,
    /// The threshold given is one that the node is configured with for this resource. Source: `evictionMessage`.
    ThresholdIsConfigured,
    /// Each usage is a figure of the node's Summary. Source: `evictionMessage` reads the Summary's cached stats. Proven
    /// wrong only where two samples around the event show that the cache did not change, or by an impossible figure.
    UsageIsInTheSummary,
    /// The limit given is the pod's own, as it prints, and one that this kubelet enforces. Source:
    /// `localStorageEviction` in `eviction_manager.go`.
    LimitIsThePods,
    /// Without node pressure there are no annotations and no `DisruptionTarget`. Source: `localStorageEviction` and
    /// `Admit` in `eviction_manager.go` pass none.
    NoPressureNoAnnotations,
}

impl Invariant {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MessageIsKnown => "message-is-known",
            Self::StatusRepeatsAnEvent => "status-repeats-an-event",
            Self::ConditionRepeatsTheStatus => "condition-repeats-the-status",
            Self::AnnotationsMatchTheMessage => "annotations-match-the-message",
            Self::OffendersAreCandidates => "offenders-are-candidates",
            Self::UsageExceedsRequest => "usage-exceeds-request",
            Self::RequestIsThePods => "request-is-the-pods",
            Self::OffendersAreComplete => "offenders-are-complete",
            Self::PodSentenceFollowsTheVersion => "pod-sentence-follows-the-version",
            Self::AvailableIsBelowTheThreshold => "available-is-below-the-threshold",
            Self::ThresholdIsConfigured => "threshold-is-configured",
            Self::UsageIsInTheSummary => "usage-is-in-the-summary",
            Self::LimitIsThePods => "limit-is-the-pods",
            Self::NoPressureNoAnnotations => "no-pressure-no-annotations",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
