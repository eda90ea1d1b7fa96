//! The invariants. Their names are stable.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A statement that holds for every eviction. Sources are in `pkg/kubelet/eviction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invariant {
    /// The event's message has one of the forms of 1.26 to 1.37.
    /// Source: the const block of `helpers.go`.
    MessageIsKnown,
    /// `status.message` is the message of one of the pod's Evicted events, byte for byte.
    /// Source: `evictPod` in `eviction_manager.go` passes the same string to both. If the kubelet
    /// evicts the pod several times, `pod_workers.go` applies one of the statuses.
    StatusRepeatsAnEvent,
    /// The message of the `DisruptionTarget` condition is `status.message`, or an event's message
    /// if the status is missing.
    /// Source: `synchronize` in `eviction_manager.go` builds the condition from the same string.
    ConditionRepeatsTheStatus,
    /// The annotations contain the offenders and the usages of the message, in its order; without
    /// offenders they may be missing.
    /// Source: `evictionMessage` in `helpers.go` builds both in one loop.
    AnnotationsMatchTheMessage,
    /// The message names each offender once, and only regular containers or, from 1.32, init
    /// containers including sidecars; never ephemeral containers.
    /// Source: `evictionMessage`, kubernetes/kubernetes#124947.
    OffendersAreCandidates,
    /// The usage of each named container is greater than its request.
    /// Source: the comparison in `evictionMessage`.
    UsageExceedsRequest,
    /// The request in the message is the container's, in its own print; `0` without a request.
    /// Source: `evictionMessage`.
    #[serde(rename = "request-is-the-pods")]
    RequestMatchesSpec,
    /// The message names every container that was over its request. Violated only if samples from
    /// before and after the event exclude that the container was within its request.
    /// Source: `evictionMessage`.
    OffendersAreComplete,
    /// The message names the pod if and only if the kubelet is 1.34 or newer and the pod has a
    /// pod-level memory request, and contains that request.
    /// Source: `evictionMessage`, feature gate `PodLevelResources`.
    PodSentenceFollowsTheVersion,
    /// The available amount is less than the threshold. An equal amount does not meet a threshold.
    /// Source: `thresholdMet` in `helpers.go`.
    AvailableIsBelowTheThreshold,
    /// The threshold in the message is configured on the node for the resource.
    /// Source: `evictionMessage`.
    ThresholdIsConfigured,
    /// Each usage is a value from the node's Summary. Violated only if the samples before and after
    /// the event agree on another value, which is that of one measurement or of four in succession,
    /// or if the value is greater than the node's capacity.
    /// Source: `evictionMessage` reads the Summary's cached statistics.
    UsageIsInTheSummary,
    /// Available amounts and usages are printed as the kubelet prints quantities: memory and
    /// storage in binary units, inodes and PIDs in decimal ones. Source: `makeSignalObservations`
    /// and `evictionMessage` in `helpers.go`.
    AmountsAreCanonical,
    /// The limit in the message is the pod's, in its own print, and this kubelet enforces it.
    /// Source: `localStorageEviction` in `eviction_manager.go`.
    #[serde(rename = "limit-is-the-pods")]
    LimitMatchesSpec,
    /// Without node pressure, the event does not have annotations and the pod does not have a
    /// `DisruptionTarget` condition.
    /// Source: `localStorageEviction` and `Admit` in `eviction_manager.go` pass neither.
    NoPressureNoAnnotations,
    /// The kubelet waits at least 10 s for the end of the pod before it reports
    /// ExceededGracePeriod. Source: `killPodNow` in `pod_workers.go`.
    KillIsAwaited,
}

impl Invariant {
    /// Returns the stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MessageIsKnown => "message-is-known",
            Self::StatusRepeatsAnEvent => "status-repeats-an-event",
            Self::ConditionRepeatsTheStatus => "condition-repeats-the-status",
            Self::AnnotationsMatchTheMessage => "annotations-match-the-message",
            Self::OffendersAreCandidates => "offenders-are-candidates",
            Self::UsageExceedsRequest => "usage-exceeds-request",
            Self::RequestMatchesSpec => "request-is-the-pods",
            Self::OffendersAreComplete => "offenders-are-complete",
            Self::PodSentenceFollowsTheVersion => "pod-sentence-follows-the-version",
            Self::AvailableIsBelowTheThreshold => "available-is-below-the-threshold",
            Self::ThresholdIsConfigured => "threshold-is-configured",
            Self::UsageIsInTheSummary => "usage-is-in-the-summary",
            Self::AmountsAreCanonical => "amounts-are-canonical",
            Self::LimitMatchesSpec => "limit-is-the-pods",
            Self::NoPressureNoAnnotations => "no-pressure-no-annotations",
            Self::KillIsAwaited => "kill-is-awaited",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
