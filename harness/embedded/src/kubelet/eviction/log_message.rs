//! Log messages of the eviction manager.

use crate::kubelet::pods::ActivePod;
use serde_json::json;

use crate::kubelet::log::Level;

/// Log message of the eviction manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogMessage {
    /// The sync loop starts.
    Starting,
    /// Waiting for the cleanup of evicted pods.
    Waiting,
    /// Thresholds on containerfs are configured.
    Containerfs,
    /// The layout of the file systems is not known yet.
    NoLayout,
    /// A pass ended with an error.
    NotSynchronized,
    /// The runtime does not report a file system for containers.
    NoContainerfs,
    /// The Summary is not available.
    NoSummary,
    /// A resource is below its threshold.
    Reclaiming,
    /// Deleting containers and images was enough.
    Relieved,
    /// Deleting containers and images was not enough.
    MustEvict,
    /// No pod is active.
    NoPods,
    /// Order of eviction.
    Ranked,
    /// No pod can be evicted.
    Unable,
    /// Evicted pods still exist after 30 s.
    TimedOut,
    /// Evicted pods are cleaned up.
    CleanedUp,
    /// A critical pod is skipped.
    Critical,
    /// The containers of a pod did not end in time.
    Failed,
    /// The containers of a pod have ended.
    Evicted,
    /// The layout of the file systems is not supported.
    NoRanking,
}

impl LogMessage {
    /// Returns the severity, the line in `eviction_manager.go` of 1.36, and the text.
    pub(super) fn parts(self) -> (Level, u16, &'static str) {
        use Level::{Error, Info};
        match self {
            Self::Starting => (Info, 194, "Eviction manager: starting control loop"),
            Self::Waiting => (Info, 213, "Eviction manager: pods evicted, waiting for pod to be cleaned up"),
            Self::Containerfs => {
                (Error, 285, "eviction manager: found conflicting containerfs eviction. Ignoring.")
            }
            Self::NoLayout => (Error, 264, "Eviction manager: failed to get HasDedicatedImageFs"),
            Self::NotSynchronized => (Error, 217, "Eviction manager: failed to synchronize"),
            Self::NoContainerfs => (
                Error,
                272,
                "eviction manager: failed to check if we have separate container filesystem. Ignoring.",
            ),
            Self::NoSummary => (Error, 297, "Eviction manager: failed to get summary stats"),
            Self::Reclaiming => (Info, 381, "Eviction manager: attempting to reclaim"),
            Self::Relieved => {
                (Info, 388, "Eviction manager: able to reduce resource pressure without evicting pods.")
            }
            Self::MustEvict => (Info, 392, "Eviction manager: must evict pod(s) to reclaim"),
            Self::NoPods => (
                Error,
                403,
                "Eviction manager: eviction thresholds have been met, but no pods are active to evict",
            ),
            Self::NoRanking => (Error, 397, "Eviction manager: no ranking function for signal"),
            Self::Ranked => (Info, 410, "Eviction manager: pods ranked for eviction"),
            Self::Unable => (Info, 444, "Eviction manager: unable to evict any pods from the node"),
            Self::TimedOut => (Info, 456, "Eviction manager: timed out waiting for pods to be cleaned up"),
            Self::CleanedUp => (Info, 464, "Eviction manager: pods successfully cleaned up"),
            Self::Critical => (Error, 616, "Eviction manager: cannot evict a critical pod"),
            Self::Failed => (Error, 633, "Eviction manager: pod failed to evict"),
            Self::Evicted => (Info, 635, "Eviction manager: pod is evicted successfully"),
        }
    }
}

/// Returns `namespace/name`.
pub(super) fn name(pod: &ActivePod) -> String {
    let metadata = &pod.pod.metadata;
    format!("{}/{}", metadata.namespace, metadata.name)
}

/// Formats pods as klog formats a slice of objects.
pub(super) fn names<'a>(pods: impl Iterator<Item = &'a ActivePod>) -> String {
    json!(pods.map(name).collect::<Vec<_>>()).to_string()
}
