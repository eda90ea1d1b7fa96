//! Eviction signals, with the resource and the node condition of each.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::KubeletVersion;

/// An eviction signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Signal {
    /// Memory of the node.
    #[serde(rename = "memory.available")]
    MemoryAvailable,
    /// Memory of node allocatable, the parent cgroup of all pods. Not configurable: the kubelet
    /// derives its thresholds from those on `memory.available`.
    #[serde(rename = "allocatableMemory.available")]
    AllocatableMemoryAvailable,
    /// Bytes of nodefs, the file system of the kubelet.
    #[serde(rename = "nodefs.available")]
    NodefsAvailable,
    /// Inodes of nodefs.
    #[serde(rename = "nodefs.inodesFree")]
    NodefsInodesFree,
    /// Bytes of imagefs, the file system of images.
    #[serde(rename = "imagefs.available")]
    ImagefsAvailable,
    /// Inodes of imagefs.
    #[serde(rename = "imagefs.inodesFree")]
    ImagefsInodesFree,
    /// Bytes of containerfs, the file system of writable layers (1.29 and newer).
    #[serde(rename = "containerfs.available")]
    ContainerfsAvailable,
    /// Inodes of containerfs (1.29 and newer).
    #[serde(rename = "containerfs.inodesFree")]
    ContainerfsInodesFree,
    /// Process IDs.
    #[serde(rename = "pid.available")]
    PidAvailable,
}

/// A resource that a node can run out of, as in eviction messages and in the annotation
/// `starved_resource`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Memory.
    Memory,
    /// Bytes of nodefs, imagefs or containerfs.
    EphemeralStorage,
    /// Inodes of nodefs, imagefs or containerfs.
    Inodes,
    /// Process IDs.
    Pids,
}

/// A file system that signals observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// That of the kubelet: volumes and logs.
    Nodefs,
    /// That of images.
    Imagefs,
    /// That of writable layers.
    Containerfs,
}

/// A node condition that reports pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeCondition {
    /// The node is low on memory.
    MemoryPressure,
    /// The node is low on bytes or inodes of a file system.
    DiskPressure,
    /// The node is low on process IDs.
    #[serde(rename = "PIDPressure")]
    PidPressure,
}

/// The signal does not exist. The message is the kubelet's own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported eviction signal {0}")]
pub struct UnknownSignalError(pub String);

impl Signal {
    /// All signals.
    pub const ALL: [Self; 9] = [
        Self::MemoryAvailable,
        Self::AllocatableMemoryAvailable,
        Self::NodefsAvailable,
        Self::NodefsInodesFree,
        Self::ImagefsAvailable,
        Self::ImagefsInodesFree,
        Self::ContainerfsAvailable,
        Self::ContainerfsInodesFree,
        Self::PidAvailable,
    ];

    /// Returns the name in the kubelet configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "memory.available",
            Self::AllocatableMemoryAvailable => "allocatableMemory.available",
            Self::NodefsAvailable => "nodefs.available",
            Self::NodefsInodesFree => "nodefs.inodesFree",
            Self::ImagefsAvailable => "imagefs.available",
            Self::ImagefsInodesFree => "imagefs.inodesFree",
            Self::ContainerfsAvailable => "containerfs.available",
            Self::ContainerfsInodesFree => "containerfs.inodesFree",
            Self::PidAvailable => "pid.available",
        }
    }

    /// Returns whether kubelets of a version have the signal (`signalToResource` in `helpers.go`).
    pub fn exists_in(self, version: &KubeletVersion) -> bool {
        match self {
            Self::ContainerfsAvailable | Self::ContainerfsInodesFree => version.at_least(29),
            Self::MemoryAvailable
            | Self::AllocatableMemoryAvailable
            | Self::NodefsAvailable
            | Self::NodefsInodesFree
            | Self::ImagefsAvailable
            | Self::ImagefsInodesFree
            | Self::PidAvailable => true,
        }
    }

    /// Returns the file system that the signal observes; `None` for memory and process IDs.
    pub fn file_system(self) -> Option<FileSystem> {
        match self {
            Self::NodefsAvailable | Self::NodefsInodesFree => Some(FileSystem::Nodefs),
            Self::ImagefsAvailable | Self::ImagefsInodesFree => Some(FileSystem::Imagefs),
            Self::ContainerfsAvailable | Self::ContainerfsInodesFree => Some(FileSystem::Containerfs),
            Self::MemoryAvailable | Self::AllocatableMemoryAvailable | Self::PidAvailable => None,
        }
    }

    /// Returns the resource that the signal observes.
    pub fn resource(self) -> Resource {
        match self {
            Self::MemoryAvailable | Self::AllocatableMemoryAvailable => Resource::Memory,
            Self::NodefsAvailable | Self::ImagefsAvailable | Self::ContainerfsAvailable => {
                Resource::EphemeralStorage
            }
            Self::NodefsInodesFree | Self::ImagefsInodesFree | Self::ContainerfsInodesFree => {
                Resource::Inodes
            }
            Self::PidAvailable => Resource::Pids,
        }
    }

    /// Returns the node condition that reports pressure on the resource.
    pub fn condition(self) -> NodeCondition {
        match self.resource() {
            Resource::Memory => NodeCondition::MemoryPressure,
            Resource::EphemeralStorage | Resource::Inodes => NodeCondition::DiskPressure,
            Resource::Pids => NodeCondition::PidPressure,
        }
    }
}

impl FromStr for Signal {
    type Err = UnknownSignalError;

    fn from_str(text: &str) -> Result<Self, UnknownSignalError> {
        let found = Self::ALL.into_iter().find(|signal| signal.as_str() == text);
        found.ok_or_else(|| UnknownSignalError(text.to_owned()))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Resource {
    /// All resources.
    pub const ALL: [Self; 4] = [Self::Memory, Self::EphemeralStorage, Self::Inodes, Self::Pids];

    /// Returns the name in messages and annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::EphemeralStorage => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
        }
    }

    /// Returns whether the resource is on a file system.
    pub fn is_on_disk(self) -> bool {
        match self {
            Self::EphemeralStorage | Self::Inodes => true,
            Self::Memory | Self::Pids => false,
        }
    }

    /// Returns whether the resource is measured in bytes; otherwise inodes or processes are
    /// counted.
    pub fn is_bytes(self) -> bool {
        match self {
            Self::Memory | Self::EphemeralStorage => true,
            Self::Inodes | Self::Pids => false,
        }
    }

    /// Returns the resource with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.as_str() == name)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl NodeCondition {
    /// Returns the condition type in the node's status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryPressure => "MemoryPressure",
            Self::DiskPressure => "DiskPressure",
            Self::PidPressure => "PIDPressure",
        }
    }

    /// Returns the condition with this type.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::MemoryPressure, Self::DiskPressure, Self::PidPressure].into_iter().find(|c| c.as_str() == name)
    }
}

impl fmt::Display for NodeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
