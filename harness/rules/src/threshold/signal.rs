//! The eviction signals, and the resources and node conditions behind them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An eviction signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Signal {
    /// The node's memory.
    #[serde(rename = "memory.available")]
    MemoryAvailable,
    /// The memory of the cgroup above all pods; made by the kubelet, not configurable.
    #[serde(rename = "allocatableMemory.available")]
    AllocatableMemoryAvailable,
    /// Bytes of the kubelet's file system.
    #[serde(rename = "nodefs.available")]
    NodefsAvailable,
    /// Inodes of the same.
    #[serde(rename = "nodefs.inodesFree")]
    NodefsInodesFree,
    /// Bytes of the images' file system.
    #[serde(rename = "imagefs.available")]
    ImagefsAvailable,
    /// Inodes of the same.
    #[serde(rename = "imagefs.inodesFree")]
    ImagefsInodesFree,
    /// Bytes of the containers' writable layers (1.29 and newer).
    #[serde(rename = "containerfs.available")]
    ContainerfsAvailable,
    /// Inodes of the same.
    #[serde(rename = "containerfs.inodesFree")]
    ContainerfsInodesFree,
    /// Process ids.
    #[serde(rename = "pid.available")]
    PidAvailable,
}

/// A resource as `starved_resource` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Memory.
    Memory,
    /// Bytes of any of the file systems.
    EphemeralStorage,
    /// Inodes of any of them.
    Inodes,
    /// Process ids.
    Pids,
}

/// A condition that a node under pressure reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeCondition {
    /// Too little memory.
    MemoryPressure,
    /// Too little disk.
    DiskPressure,
    /// Too few process ids.
    #[serde(rename = "PIDPressure")]
    PidPressure,
}

/// No kubelet knows this signal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported eviction signal {0}")]
pub struct UnknownSignal(pub String);

impl Signal {
    /// Every signal.
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

    /// The name, as the kubelet's configuration has it.
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

    /// The resource that runs out.
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

    /// The node condition that follows.
    pub fn condition(self) -> NodeCondition {
        match self.resource() {
            Resource::Memory => NodeCondition::MemoryPressure,
            Resource::EphemeralStorage | Resource::Inodes => NodeCondition::DiskPressure,
            Resource::Pids => NodeCondition::PidPressure,
        }
    }
}

impl FromStr for Signal {
    type Err = UnknownSignal;

    fn from_str(text: &str) -> Result<Self, UnknownSignal> {
        let found = Self::ALL.into_iter().find(|signal| signal.as_str() == text);
        found.ok_or_else(|| UnknownSignal(text.to_owned()))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Resource {
    /// Every resource.
    pub const ALL: [Self; 4] = [Self::Memory, Self::EphemeralStorage, Self::Inodes, Self::Pids];

    /// The name in messages and annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::EphemeralStorage => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
        }
    }

    /// The resource of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.as_str() == name)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl NodeCondition {
    /// The condition's type in a node's status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryPressure => "MemoryPressure",
            Self::DiskPressure => "DiskPressure",
            Self::PidPressure => "PIDPressure",
        }
    }

    /// The condition of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::MemoryPressure, Self::DiskPressure, Self::PidPressure].into_iter().find(|c| c.as_str() == name)
    }
}

impl fmt::Display for NodeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
