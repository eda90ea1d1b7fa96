//! What a kubelet tries before it evicts a pod: `buildSignalToNodeReclaimFuncs`.

use super::Signal;
use crate::KubeletVersion;
use crate::ranking::Disks;

/// Something that frees disk without evicting anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// All dead containers are deleted.
    Containers,
    /// All unused images are deleted.
    Images,
}

/// What is tried for a signal, in order. Containerfs has nothing through 1.31: 1.32 gave it what its
/// file system has.
pub fn node_level_reclaim(version: &KubeletVersion, signal: Signal, disks: Disks) -> &'static [Reclaim] {
    use Reclaim::{Containers, Images};
    let (nodefs, imagefs): (&[Reclaim], &[Reclaim]) = match disks {
        Disks::Single => (&[Containers, Images], &[Containers, Images]),
        Disks::DedicatedImages => (&[], &[Containers, Images]),
        Disks::Split => (&[Containers], &[Images]),
    };
    match signal {
        Signal::NodefsAvailable | Signal::NodefsInodesFree => nodefs,
        Signal::ImagefsAvailable | Signal::ImagefsInodesFree => imagefs,
        Signal::ContainerfsAvailable | Signal::ContainerfsInodesFree if version.at_least(32) => match disks {
            Disks::DedicatedImages => imagefs,
            Disks::Single | Disks::Split => nodefs,
        },
        _ => &[],
    }
}
