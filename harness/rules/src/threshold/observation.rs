//! What the kubelet observes of a signal: `makeSignalObservations`.

use jiff::Timestamp;

use super::Signal;
use crate::pod::{FsStats, MemoryStats, NodeStats};
use crate::quantity::Quantity;

/// One signal's figures, prints as the kubelet prints them.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The signal.
    pub signal: Signal,
    /// What is left.
    pub available: Quantity,
    /// What percentages are of.
    pub capacity: Option<Quantity>,
    /// When it was measured; the kubelet does not act twice on one measurement.
    pub time: Option<Timestamp>,
}

impl Observation {
    /// The observation in a node's Summary; none if the figures are missing.
    pub fn of(signal: Signal, node: &NodeStats) -> Option<Self> {
        let runtime = node.runtime.as_ref();
        let (nodefs, imagefs, containerfs) = (
            node.fs.as_ref(),
            runtime.and_then(|runtime| runtime.image_fs.as_ref()),
            runtime.and_then(|runtime| runtime.container_fs.as_ref()),
        );
        let pods = node.system_containers.iter().find(|cgroup| cgroup.name == "pods");
        let (available, capacity, time) = match signal {
            Signal::MemoryAvailable => memory(node.memory.as_ref()?)?,
            Signal::AllocatableMemoryAvailable => memory(pods?.memory.as_ref()?)?,
            Signal::NodefsAvailable => bytes(nodefs?)?,
            Signal::ImagefsAvailable => bytes(imagefs?)?,
            Signal::ContainerfsAvailable => bytes(containerfs?)?,
            Signal::NodefsInodesFree => inodes(nodefs?)?,
            Signal::ImagefsInodesFree => inodes(imagefs?)?,
            Signal::ContainerfsInodesFree => inodes(containerfs?)?,
            Signal::PidAvailable => {
                let rlimit = node.rlimit.as_ref()?;
                let most = rlimit.maxpid?;
                (Quantity::from_count(most - rlimit.curproc?), Some(Quantity::from_count(most)), rlimit.time)
            }
        };
        Some(Self { signal, available, capacity, time })
    }
}

type Figures = (Quantity, Option<Quantity>, Option<Timestamp>);

fn memory(stats: &MemoryStats) -> Option<Figures> {
    Some((
        Quantity::from_bytes(stats.available_bytes?),
        stats.capacity().map(Quantity::from_bytes),
        stats.time,
    ))
}

fn bytes(fs: &FsStats) -> Option<Figures> {
    Some((Quantity::from_bytes(fs.available_bytes?), fs.capacity_bytes.map(Quantity::from_bytes), fs.time))
}

fn inodes(fs: &FsStats) -> Option<Figures> {
    Some((Quantity::from_count(fs.inodes_free?), fs.inodes.map(Quantity::from_count), fs.time))
}
