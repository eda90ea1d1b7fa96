//! Log messages of the eviction manager, with their line numbers in `eviction_manager.go`.

use crate::kubelet::pods::ActivePod;
use evictlab_rules::KubeletVersion;
use serde_json::json;

use crate::kubelet::log::Level;

/// Log message of the eviction manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogMessage {
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

/// Line numbers by version, in the order of [`LogMessage`]: 1.27 and 1.28, 1.29, 1.30, 1.31, 1.32,
/// 1.33 and 1.34, 1.35 and newer.
const PLACES: [[u16; 17]; 7] = [
    [201, 0, 0, 0, 0, 258, 342, 349, 353, 364, 371, 403, 415, 423, 574, 590, 592],
    [205, 270, 254, 209, 0, 282, 366, 373, 377, 388, 395, 427, 439, 447, 598, 614, 616],
    [208, 273, 257, 212, 0, 285, 369, 376, 380, 391, 398, 430, 442, 450, 601, 617, 619],
    [208, 273, 257, 212, 0, 285, 369, 376, 380, 391, 398, 427, 439, 447, 598, 614, 616],
    [208, 280, 259, 212, 267, 292, 376, 383, 387, 398, 405, 438, 450, 458, 609, 625, 627],
    [208, 280, 259, 212, 267, 292, 376, 383, 387, 398, 405, 439, 451, 459, 610, 627, 629],
    [213, 285, 264, 217, 272, 297, 381, 388, 392, 403, 410, 444, 456, 464, 616, 633, 635],
];

impl LogMessage {
    /// Returns the line number in `eviction_manager.go`.
    pub(super) fn place(self, version: &KubeletVersion) -> u16 {
        if self == Self::NoRanking {
            return Self::MustEvict.place(version) + 5;
        }
        let row = [29, 30, 31, 32, 33, 35].iter().filter(|minor| version.at_least(**minor)).count();
        PLACES[row][self as usize]
    }

    /// Returns the severity.
    pub(super) fn level(self) -> Level {
        match self {
            Self::Containerfs
            | Self::NoLayout
            | Self::NotSynchronized
            | Self::NoContainerfs
            | Self::NoSummary
            | Self::NoPods
            | Self::NoRanking
            | Self::Critical
            | Self::Failed => Level::Error,
            _ => Level::Info,
        }
    }

    /// Returns the text.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Waiting => "Eviction manager: pods evicted, waiting for pod to be cleaned up",
            Self::Containerfs => "eviction manager: found conflicting containerfs eviction. Ignoring.",
            Self::NoLayout => "Eviction manager: failed to get HasDedicatedImageFs",
            Self::NotSynchronized => "Eviction manager: failed to synchronize",
            Self::NoContainerfs => {
                "eviction manager: failed to check if we have separate container filesystem. Ignoring."
            }
            Self::NoSummary => "Eviction manager: failed to get summary stats",
            Self::Reclaiming => "Eviction manager: attempting to reclaim",
            Self::Relieved => "Eviction manager: able to reduce resource pressure without evicting pods.",
            Self::MustEvict => "Eviction manager: must evict pod(s) to reclaim",
            Self::NoPods => {
                "Eviction manager: eviction thresholds have been met, but no pods are active to evict"
            }
            Self::NoRanking => "Eviction manager: no ranking function for signal",
            Self::Ranked => "Eviction manager: pods ranked for eviction",
            Self::Unable => "Eviction manager: unable to evict any pods from the node",
            Self::TimedOut => "Eviction manager: timed out waiting for pods to be cleaned up",
            Self::CleanedUp => "Eviction manager: pods successfully cleaned up",
            Self::Critical => "Eviction manager: cannot evict a critical pod",
            Self::Failed => "Eviction manager: pod failed to evict",
            Self::Evicted => "Eviction manager: pod is evicted successfully",
        }
    }
}

/// Returns the line number of a memory notification.
pub(super) fn crossed(version: &KubeletVersion) -> u16 {
    const PLACES: [u16; 5] = [181, 184, 187, 186, 191];
    PLACES[[29, 30, 31, 35].iter().filter(|minor| version.at_least(**minor)).count()]
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
