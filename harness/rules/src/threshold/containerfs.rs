//! Thresholds on containerfs, which cannot be configured: `UpdateContainerFsThresholds`.

use super::{FsLayout, Signal, Threshold};
use crate::KubeletVersion;

/// Returns the thresholds of a kubelet that knows the layout of its file systems, and the error
/// that the kubelet logs for the last configured containerfs threshold, if any.
///
/// From 1.29, containerfs thresholds are copies: of nodefs thresholds, or of imagefs thresholds
/// with a dedicated imagefs. Configured containerfs thresholds are dropped. Older kubelets do not
/// have the signal.
pub fn update_containerfs_thresholds(
    version: &KubeletVersion,
    thresholds: &[Threshold],
    layout: FsLayout,
) -> (Vec<Threshold>, Option<String>) {
    if !version.at_least(29) {
        return (thresholds.to_vec(), None);
    }
    let on_containerfs = |threshold: &&Threshold| {
        matches!(threshold.signal, Signal::ContainerfsAvailable | Signal::ContainerfsInodesFree)
    };
    let conflict = thresholds.iter().rfind(on_containerfs).map(|threshold| {
        let kind = if threshold.grace.is_none() { "hard" } else { "soft" };
        format!("found {} for {kind} eviction. ignoring", threshold.signal)
    });
    let (bytes, inodes) = match layout {
        FsLayout::Single | FsLayout::SplitImagefs => (Signal::NodefsAvailable, Signal::NodefsInodesFree),
        FsLayout::DedicatedImagefs => (Signal::ImagefsAvailable, Signal::ImagefsInodesFree),
    };
    let mut all: Vec<Threshold> =
        thresholds.iter().filter(|threshold| !on_containerfs(threshold)).cloned().collect();
    for (source, signal) in [(bytes, Signal::ContainerfsAvailable), (inodes, Signal::ContainerfsInodesFree)] {
        let copies = thresholds.iter().filter(|threshold| threshold.signal == source);
        all.extend(copies.map(|threshold| Threshold { signal, ..threshold.clone() }));
    }
    (all, conflict)
}
