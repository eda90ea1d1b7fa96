//! The thresholds on the containers' file system, which nobody may configure: `UpdateContainerFsThresholds`.

use super::{Signal, Threshold};
use crate::KubeletVersion;
use crate::ranking::Disks;

/// Thresholds as a kubelet holds them once it knows its file systems: from 1.29 on, those on containerfs follow nodefs, or imagefs where
/// images have a file system of their own; what was configured for containerfs is replaced. With them comes what the kubelet
/// says of the last one replaced.
pub fn with_containerfs(
    version: &KubeletVersion,
    thresholds: &[Threshold],
    disks: Disks,
) -> (Vec<Threshold>, Option<String>) {
    if !version.at_least(29) {
        return (thresholds.to_vec(), None);
    }
    let stated = |threshold: &&Threshold| {
        matches!(threshold.signal, Signal::ContainerfsAvailable | Signal::ContainerfsInodesFree)
    };
    let conflict = thresholds.iter().rfind(stated).map(|threshold| {
        let kind = if threshold.grace.is_none() { "hard" } else { "soft" };
        format!("found {} for {kind} eviction. ignoring", threshold.signal)
    });
    let (bytes, inodes) = match disks {
        Disks::Single | Disks::Split => (Signal::NodefsAvailable, Signal::NodefsInodesFree),
        Disks::DedicatedImages => (Signal::ImagefsAvailable, Signal::ImagefsInodesFree),
    };
    let mut all: Vec<Threshold> = thresholds.iter().filter(|threshold| !stated(threshold)).cloned().collect();
    for (of, signal) in [(bytes, Signal::ContainerfsAvailable), (inodes, Signal::ContainerfsInodesFree)] {
        let copies = thresholds.iter().filter(|threshold| threshold.signal == of);
        all.extend(copies.map(|threshold| Threshold { signal, ..threshold.clone() }));
    }
    (all, conflict)
}
