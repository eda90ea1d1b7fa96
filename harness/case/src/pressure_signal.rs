//! The eviction signals of cases.

use evictlab_rules::quantity::MIB;
use evictlab_rules::threshold::{FileSystem, Resource, Signal};
use schemars::JsonSchema;
use serde::Deserialize;

/// Eviction signals that a case can put under pressure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(rename = "Signal")]
pub enum PressureSignal {
    /// Memory of the node: capacity minus working set. Separate for each node.
    #[serde(rename = "memory.available")]
    MemoryAvailable,
    /// Free bytes of nodefs, the file system of the kubelet. With kind, nodes share the disk of
    /// the host.
    #[serde(rename = "nodefs.available")]
    NodefsAvailable,
    /// Free inodes of nodefs. With kind, nodes share the disk of the host.
    #[serde(rename = "nodefs.inodesFree")]
    NodefsInodesFree,
    /// Free bytes of imagefs, the file system of images and writable layers. It is nodefs, unless
    /// the case states `node.file-systems`.
    #[serde(rename = "imagefs.available")]
    ImagefsAvailable,
    /// Free inodes of imagefs. It is nodefs, unless the case states `node.file-systems`.
    #[serde(rename = "imagefs.inodesFree")]
    ImagefsInodesFree,
    /// Free process IDs. With kind, nodes share the process IDs of the host.
    #[serde(rename = "pid.available")]
    PidAvailable,
}

impl PressureSignal {
    /// Returns the name of the signal in a KubeletConfiguration.
    pub fn as_str(self) -> &'static str {
        self.eviction_signal().as_str()
    }

    /// Returns the kubelet's signal.
    pub fn eviction_signal(self) -> Signal {
        match self {
            Self::MemoryAvailable => Signal::MemoryAvailable,
            Self::NodefsAvailable => Signal::NodefsAvailable,
            Self::NodefsInodesFree => Signal::NodefsInodesFree,
            Self::ImagefsAvailable => Signal::ImagefsAvailable,
            Self::ImagefsInodesFree => Signal::ImagefsInodesFree,
            Self::PidAvailable => Signal::PidAvailable,
        }
    }

    /// Returns the resource that eviction messages name for the signal.
    pub fn resource(self) -> Resource {
        self.eviction_signal().resource()
    }

    /// Returns the resource of `kubeReserved` that reserves what the signal counts; `None` if
    /// nothing does.
    pub fn reservable_resource(self) -> Option<&'static str> {
        match self {
            Self::MemoryAvailable => Some("memory"),
            Self::NodefsAvailable => Some("ephemeral-storage"),
            Self::PidAvailable => Some("pid"),
            Self::NodefsInodesFree | Self::ImagefsAvailable | Self::ImagefsInodesFree => None,
        }
    }

    /// Returns the distance of the threshold in a case that does not state one, in bytes, inodes or
    /// process IDs.
    pub fn default_distance(self) -> u64 {
        match self {
            Self::MemoryAvailable => 320 * MIB,
            Self::NodefsAvailable | Self::ImagefsAvailable => 512 * MIB,
            Self::NodefsInodesFree | Self::ImagefsInodesFree => 20_000,
            Self::PidAvailable => 1_000,
        }
    }

    /// Returns whether the signal is in bytes; otherwise it counts inodes or processes.
    pub fn is_bytes(self) -> bool {
        self.resource().is_bytes()
    }

    /// Returns whether the signal is on a file system.
    pub fn is_on_disk(self) -> bool {
        self.resource().is_on_disk()
    }

    /// Returns whether the signal is on nodefs.
    pub fn is_on_nodefs(self) -> bool {
        self.eviction_signal().file_system() == Some(FileSystem::Nodefs)
    }

    /// Returns whether the signal is on imagefs.
    pub fn is_on_imagefs(self) -> bool {
        self.eviction_signal().file_system() == Some(FileSystem::Imagefs)
    }
}
