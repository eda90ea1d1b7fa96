//! Node-level reclaim, which the kubelet tries before it evicts a pod:
//! `buildSignalToNodeReclaimFuncs`.

use super::{FileSystem, FsLayout, Signal};
use crate::KubeletVersion;

/// A way to free disk space without evicting a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimAction {
    /// Delete all dead containers.
    DeleteContainers,
    /// Delete all unused images.
    DeleteImages,
}

/// Returns the actions that the kubelet tries for a signal, in order.
///
/// Through 1.31, containerfs signals do not have any. From 1.32, they have those of the file system
/// that holds the writable layers.
pub fn reclaim_actions(
    version: &KubeletVersion,
    signal: Signal,
    layout: FsLayout,
) -> &'static [ReclaimAction] {
    use ReclaimAction::{DeleteContainers, DeleteImages};
    let (nodefs, imagefs): (&[ReclaimAction], &[ReclaimAction]) = match layout {
        FsLayout::Single => (&[DeleteContainers, DeleteImages], &[DeleteContainers, DeleteImages]),
        FsLayout::DedicatedImagefs => (&[], &[DeleteContainers, DeleteImages]),
        FsLayout::SplitImagefs => (&[DeleteContainers], &[DeleteImages]),
    };
    match signal.file_system() {
        Some(FileSystem::Nodefs) => nodefs,
        Some(FileSystem::Imagefs) => imagefs,
        Some(FileSystem::Containerfs) if !version.at_least(32) => &[],
        Some(FileSystem::Containerfs) => match layout {
            FsLayout::DedicatedImagefs => imagefs,
            FsLayout::Single | FsLayout::SplitImagefs => nodefs,
        },
        None => &[],
    }
}
