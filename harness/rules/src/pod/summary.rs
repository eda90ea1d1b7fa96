//! A node's Summary (`stats/v1alpha1`), as far as eviction looks at it.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// One answer of `/stats/summary`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Sample {
    /// Seconds since the watching began.
    #[serde(default)]
    pub t: f64,
    /// The node.
    #[serde(default)]
    pub node: NodeStats,
    /// Its pods; those without a running container are missing.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub pods: Vec<PodStats>,
}

/// The node's own figures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStats {
    /// Memory of the whole node.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
    /// The kubelet's file system.
    #[serde(default)]
    pub fs: Option<FsStats>,
    /// The runtime's file systems.
    #[serde(default)]
    pub runtime: Option<RuntimeStats>,
    /// Process ids.
    #[serde(default)]
    pub rlimit: Option<Rlimit>,
    /// The cgroups that the kubelet keeps beside the pods; `pods` is the one above them all.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub system_containers: Vec<SystemContainer>,
}

/// A system cgroup.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SystemContainer {
    /// `kubelet`, `runtime`, `misc` or `pods`.
    pub name: String,
    /// Its memory.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
}

/// Memory in bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// When it was measured, in whole seconds.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// What is left.
    #[serde(default)]
    pub available_bytes: Option<i64>,
    /// What cannot be reclaimed at once.
    #[serde(default)]
    pub working_set_bytes: Option<i64>,
}

/// A file system, or a part of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsStats {
    /// When it was measured.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// Bytes left.
    #[serde(default)]
    pub available_bytes: Option<i64>,
    /// Bytes in all.
    #[serde(default)]
    pub capacity_bytes: Option<i64>,
    /// Bytes used.
    #[serde(default)]
    pub used_bytes: Option<i64>,
    /// Inodes left.
    #[serde(default)]
    pub inodes_free: Option<i64>,
    /// Inodes in all.
    #[serde(default)]
    pub inodes: Option<i64>,
    /// Inodes used.
    #[serde(default)]
    pub inodes_used: Option<i64>,
}

/// The runtime's file systems.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStats {
    /// Where images are.
    #[serde(default)]
    pub image_fs: Option<FsStats>,
    /// Where containers write.
    #[serde(default)]
    pub container_fs: Option<FsStats>,
}

/// Process ids of the node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Rlimit {
    /// When the Summary was made: this figure is never cached.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// The most there can be.
    #[serde(default)]
    pub maxpid: Option<i64>,
    /// Those there are.
    #[serde(default)]
    pub curproc: Option<i64>,
}

/// A pod's figures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStats {
    /// Which pod.
    pub pod_ref: PodRef,
    /// Its running containers, in no order that means anything.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub containers: Vec<ContainerStats>,
    /// The pod's cgroup.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
    /// Its volumes.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub volume: Vec<VolumeStats>,
    /// Everything of it on the node's disk.
    #[serde(default, rename = "ephemeral-storage")]
    pub ephemeral_storage: Option<FsStats>,
    /// Its processes.
    #[serde(default, rename = "process_stats")]
    pub process_stats: Option<ProcessStats>,
}

/// Which pod some figures are of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodRef {
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The namespace.
    #[serde(default)]
    pub namespace: String,
    /// The uid.
    #[serde(default)]
    pub uid: String,
}

/// A container's figures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStats {
    /// The name.
    pub name: String,
    /// When it started.
    #[serde(default)]
    pub start_time: Option<Timestamp>,
    /// Its cgroup.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
    /// What it wrote.
    #[serde(default)]
    pub rootfs: Option<FsStats>,
    /// What it logged.
    #[serde(default)]
    pub logs: Option<FsStats>,
}

/// A volume's figures.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VolumeStats {
    /// The name.
    pub name: String,
    /// The figures.
    #[serde(flatten)]
    pub fs: FsStats,
}

/// A pod's processes.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ProcessStats {
    /// How many.
    #[serde(default)]
    pub process_count: Option<i64>,
}

impl Sample {
    /// The figures of a pod, by uid.
    pub fn pod(&self, uid: &str) -> Option<&PodStats> {
        self.pods.iter().find(|stats| stats.pod_ref.uid == uid)
    }
}

impl MemoryStats {
    /// What a percentage of the memory is taken of: available and working set.
    pub fn capacity(&self) -> Option<i64> {
        self.available_bytes?.checked_add(self.working_set_bytes?)
    }
}

impl PodStats {
    /// The working set of the pod's cgroup.
    pub fn working_set(&self) -> Option<i64> {
        self.memory.as_ref()?.working_set_bytes
    }
}

impl ContainerStats {
    /// The working set.
    pub fn working_set(&self) -> Option<i64> {
        self.memory.as_ref()?.working_set_bytes
    }

    /// Bytes written and logged, only where both are known.
    pub fn disk(&self) -> Option<i64> {
        self.rootfs.as_ref()?.used_bytes?.checked_add(self.logs.as_ref()?.used_bytes?)
    }
}

/// The kubelet writes an empty list as null.
fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
