//! Observations of signals in a Summary: `makeSignalObservations`.

use jiff::Timestamp;

use super::Signal;
use crate::quantity::Quantity;
use crate::summary::{FsStats, MemoryStats, NodeStats};

/// The observed value of one signal. Quantities print as the kubelet prints them.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Observed signal.
    pub signal: Signal,
    /// Available amount.
    pub available: Quantity,
    /// Capacity, which percentage thresholds refer to.
    pub capacity: Option<Quantity>,
    /// Time of the measurement. The kubelet does not act on the same measurement twice.
    pub time: Option<Timestamp>,
}

impl Observation {
    /// Returns the observation of a signal, or `None` if the node did not report its statistics:
    /// available amount and capacity, or working set in place of the capacity of memory.
    pub fn from_node_stats(signal: Signal, node: &NodeStats) -> Option<Self> {
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
                let max = rlimit.maxpid?;
                (Quantity::from_count(max - rlimit.curproc?), Some(Quantity::from_count(max)), rlimit.time)
            }
        };
        Some(Self { signal, available, capacity, time })
    }
}

/// Available amount, capacity and time of the measurement.
type Measurement = (Quantity, Option<Quantity>, Option<Timestamp>);

fn memory(stats: &MemoryStats) -> Option<Measurement> {
    let capacity = Quantity::from_bytes(stats.capacity()?);
    Some((Quantity::from_bytes(stats.available_bytes?), Some(capacity), stats.time))
}

fn bytes(fs: &FsStats) -> Option<Measurement> {
    let capacity = Quantity::from_bytes(fs.capacity_bytes?);
    Some((Quantity::from_bytes(fs.available_bytes?), Some(capacity), fs.time))
}

fn inodes(fs: &FsStats) -> Option<Measurement> {
    Some((Quantity::from_count(fs.inodes_free?), Some(Quantity::from_count(fs.inodes?)), fs.time))
}
