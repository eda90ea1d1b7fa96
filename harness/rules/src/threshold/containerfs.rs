//! Thresholds on containerfs, which cannot be configured: `UpdateContainerFsThresholds`.

use super::{FileSystem, FsLayout, Signal, Threshold};
use crate::KubeletVersion;

/// Thresholds of a kubelet that has detected the layout of its file systems.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerfsThresholds {
    /// Thresholds of the pass that detects the layout.
    pub first: Vec<Threshold>,
    /// Thresholds of all later passes.
    pub later: Vec<Threshold>,
    /// Error that the kubelet logs for the last configured containerfs threshold, if any.
    pub conflict: Option<String>,
}

/// Replaces the thresholds on containerfs.
///
/// Since 1.29, containerfs thresholds are copies: of nodefs thresholds, or of imagefs thresholds
/// with a dedicated imagefs. A configured containerfs threshold is overwritten, also for the pass
/// that detects the layout, because `synchronize` reads the same array; without one the copy is
/// appended, and counts from the next pass on. Of two hard thresholds on containerfs, only the
/// last one is overwritten. Older kubelets do not have the signals.
///
/// Source: `UpdateContainerFsThresholds` in `helpers.go`, and its call in `eviction_manager.go`.
pub fn update_containerfs_thresholds(
    version: &KubeletVersion,
    thresholds: &[Threshold],
    layout: FsLayout,
) -> ContainerfsThresholds {
    if !version.at_least(29) {
        let all = thresholds.to_vec();
        return ContainerfsThresholds { first: all.clone(), later: all, conflict: None };
    }
    let is_on_containerfs =
        |threshold: &&Threshold| threshold.signal.file_system() == Some(FileSystem::Containerfs);
    let conflict = thresholds.iter().rfind(is_on_containerfs).map(|threshold| {
        let kind = if threshold.grace.is_none() { "hard" } else { "soft" };
        format!("found {} for {kind} eviction. ignoring", threshold.signal)
    });
    let (bytes, inodes) = match layout {
        FsLayout::Single | FsLayout::SplitImagefs => (Signal::NodefsAvailable, Signal::NodefsInodesFree),
        FsLayout::DedicatedImagefs => (Signal::ImagefsAvailable, Signal::ImagefsInodesFree),
    };
    let mut overwritten: Vec<Option<Threshold>> = thresholds.iter().cloned().map(Some).collect();
    let mut appended = Vec::new();
    for (source, signal) in [(bytes, Signal::ContainerfsAvailable), (inodes, Signal::ContainerfsInodesFree)] {
        for is_hard in [true, false] {
            let is = |threshold: &Threshold, signal| {
                threshold.signal == signal && threshold.grace.is_none() == is_hard
            };
            let source = thresholds.iter().rfind(|threshold| is(threshold, source));
            let copy = source.map(|threshold| Threshold { signal, ..threshold.clone() });
            match thresholds.iter().rposition(|threshold| is(threshold, signal)) {
                // Without a source, the kubelet overwrites with a threshold that is never met.
                Some(place) => overwritten[place] = copy,
                None => appended.extend(copy),
            }
        }
    }
    let first: Vec<Threshold> = overwritten.into_iter().flatten().collect();
    let later = first.iter().cloned().chain(appended).collect();
    ContainerfsThresholds { first, later, conflict }
}
