//! The Summary API (`stats/v1alpha1`): the statistics that a kubelet bases evictions on.
//!
//! The types deserialize from the answer of `/stats/summary` and ignore fields that eviction does
//! not depend on. A missing field means that the kubelet did not report the value.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// One answer of `/stats/summary`, with the time of the request.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Sample {
    /// Seconds since the first request.
    #[serde(default)]
    pub t: f64,
    /// Statistics of the node.
    #[serde(default)]
    pub node: NodeStats,
    /// Statistics of the pods that have a running container.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub pods: Vec<PodStats>,
}

/// Statistics of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStats {
    /// Memory of the node's root cgroup.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
    /// nodefs, the file system of the kubelet's root directory.
    #[serde(default)]
    pub fs: Option<FsStats>,
    /// File systems of the container runtime.
    #[serde(default)]
    pub runtime: Option<RuntimeStats>,
    /// Process ids of the node.
    #[serde(default)]
    pub rlimit: Option<Rlimit>,
    /// System cgroups. The one called `pods` is the parent of all pods (node allocatable).
    #[serde(default, deserialize_with = "null_is_empty")]
    pub system_containers: Vec<SystemContainer>,
}

/// Statistics of a system cgroup.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SystemContainer {
    /// `kubelet`, `runtime`, `misc` or `pods`.
    pub name: String,
    /// Memory of the cgroup.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
}

/// Memory statistics, in bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// Time of the measurement, in whole seconds.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// Available memory: capacity or limit, less the working set.
    #[serde(default)]
    pub available_bytes: Option<i64>,
    /// Working set: usage less inactive file cache.
    #[serde(default)]
    pub working_set_bytes: Option<i64>,
}

/// Statistics of a file system, or of one user of a file system.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsStats {
    /// Time of the measurement.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// Free bytes.
    #[serde(default)]
    pub available_bytes: Option<i64>,
    /// Total bytes.
    #[serde(default)]
    pub capacity_bytes: Option<i64>,
    /// Used bytes.
    #[serde(default)]
    pub used_bytes: Option<i64>,
    /// Free inodes.
    #[serde(default)]
    pub inodes_free: Option<i64>,
    /// Total inodes.
    #[serde(default)]
    pub inodes: Option<i64>,
    /// Used inodes.
    #[serde(default)]
    pub inodes_used: Option<i64>,
}

/// File systems of the container runtime.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStats {
    /// imagefs, which holds images.
    #[serde(default)]
    pub image_fs: Option<FsStats>,
    /// containerfs, which holds writable layers.
    #[serde(default)]
    pub container_fs: Option<FsStats>,
}

/// Process ids of a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Rlimit {
    /// Time of the Summary. Unlike all other statistics, these are never cached.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// Maximum number of process ids.
    #[serde(default)]
    pub maxpid: Option<i64>,
    /// Number of process ids in use.
    #[serde(default)]
    pub curproc: Option<i64>,
}

/// Statistics of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStats {
    /// Reference to the pod.
    pub pod_ref: PodRef,
    /// Statistics of running containers, in arbitrary order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub containers: Vec<ContainerStats>,
    /// Memory of the pod's cgroup.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
    /// Statistics of volumes.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub volume: Vec<VolumeStats>,
    /// Local ephemeral storage of the whole pod: writable layers, logs and local volumes.
    #[serde(default, rename = "ephemeral-storage")]
    pub ephemeral_storage: Option<FsStats>,
    /// Processes of the pod.
    #[serde(default, rename = "process_stats")]
    pub process_stats: Option<ProcessStats>,
}

/// Reference to a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodRef {
    /// Pod name.
    #[serde(default)]
    pub name: String,
    /// Namespace.
    #[serde(default)]
    pub namespace: String,
    /// UID.
    #[serde(default)]
    pub uid: String,
}

/// Statistics of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStats {
    /// Container name.
    pub name: String,
    /// Start time.
    #[serde(default)]
    pub start_time: Option<Timestamp>,
    /// Memory of the container's cgroup.
    #[serde(default)]
    pub memory: Option<MemoryStats>,
    /// Writable layer.
    #[serde(default)]
    pub rootfs: Option<FsStats>,
    /// Logs.
    #[serde(default)]
    pub logs: Option<FsStats>,
}

/// Statistics of a volume.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VolumeStats {
    /// Volume name.
    pub name: String,
    /// Usage and capacity.
    #[serde(flatten)]
    pub fs: FsStats,
}

/// Process statistics of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ProcessStats {
    /// Number of processes.
    #[serde(default)]
    pub process_count: Option<i64>,
}

impl Sample {
    /// Returns the statistics of the pod with this UID.
    pub fn pod(&self, uid: &str) -> Option<&PodStats> {
        self.pods.iter().find(|stats| stats.pod_ref.uid == uid)
    }
}

impl MemoryStats {
    /// Returns the memory capacity, which percentage thresholds refer to: available bytes plus
    /// working set.
    pub fn capacity(&self) -> Option<i64> {
        self.available_bytes?.checked_add(self.working_set_bytes?)
    }
}

impl PodStats {
    /// Returns the working set of the pod's cgroup, in bytes.
    pub fn working_set(&self) -> Option<i64> {
        self.memory.as_ref()?.working_set_bytes
    }
}

impl ContainerStats {
    /// Returns the working set, in bytes.
    pub fn working_set(&self) -> Option<i64> {
        self.memory.as_ref()?.working_set_bytes
    }

    /// Returns the bytes of the writable layer and the logs; `None` unless both are known.
    pub fn disk_usage(&self) -> Option<i64> {
        self.rootfs.as_ref()?.used_bytes?.checked_add(self.logs.as_ref()?.used_bytes?)
    }
}

/// Deserializes null, the kubelet's form of an empty list, as an empty list.
fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
