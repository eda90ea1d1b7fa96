//! What the rules need to know of a pod (its manifest) and of a node (its Summary). Both deserialize from what the
//! API server and the kubelet answer; fields that the rules do not use are ignored.

mod manifest;
mod qos;
mod requests;
mod summary;

pub use manifest::{Container, EmptyDir, Metadata, Pod, Resources, Spec, Status, Volume};
pub use qos::Qos;
pub use summary::{
    ContainerStats, FsStats, MemoryStats, NodeStats, PodRef, PodStats, ProcessStats, Rlimit, RuntimeStats,
    Sample, SystemContainer, VolumeStats,
};
