//! The Summary API (`stats/v1alpha1`): the statistics that a kubelet bases evictions on.
//!
//! The types deserialize from the answer of `/stats/summary` and serialize in the same form. They
//! leave out fields that neither eviction nor its readers depend on. A missing field means that the
//! kubelet did not report the value. Times serialize in whole seconds, as `metav1.Time`.

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// One answer of `/stats/summary`, with the time of the request.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Sample {
    /// Seconds since the first request.
    #[serde(default, skip_serializing)]
    pub t: f64,
    /// Statistics of the node.
    #[serde(default)]
    pub node: NodeStats,
    /// Statistics of the pods that have a running container.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub pods: Vec<PodStats>,
}

/// Statistics of a node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStats {
    /// Name of the node.
    #[serde(default)]
    pub node_name: String,
    /// System cgroups. The one called `pods` is the parent of all pods (node allocatable).
    #[serde(default, deserialize_with = "null_is_empty")]
    pub system_containers: Vec<SystemContainer>,
    /// Start time of the node.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub start_time: Option<Timestamp>,
    /// CPU of the root cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuStats>,
    /// Memory of the node's root cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStats>,
    /// nodefs, the file system of the kubelet's root directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsStats>,
    /// File systems of the container runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeStats>,
    /// Process IDs of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rlimit: Option<Rlimit>,
}

/// Statistics of a system cgroup.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemContainer {
    /// `kubelet`, `runtime`, `misc` or `pods`.
    pub name: String,
    /// Start time.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub start_time: Option<Timestamp>,
    /// CPU of the cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuStats>,
    /// Memory of the cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStats>,
}

/// CPU statistics.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuStats {
    /// Time of the measurement.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub time: Option<Timestamp>,
    /// Usage in nanocores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_nano_cores: Option<u64>,
    /// Total usage in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_core_nano_seconds: Option<u64>,
}

/// Memory statistics, in bytes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// Time of the measurement, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub time: Option<Timestamp>,
    /// Available memory: capacity or limit, less the working set.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<i64>,
    /// Usage, including file cache.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub usage_bytes: Option<i64>,
    /// Working set: usage less inactive file cache.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<i64>,
    /// Anonymous memory.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<i64>,
}

/// Statistics of a file system, or of one user of a file system.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FsStats {
    /// Time of the measurement.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub time: Option<Timestamp>,
    /// Free bytes.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<i64>,
    /// Total bytes.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<i64>,
    /// Used bytes.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<i64>,
    /// Free inodes.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub inodes_free: Option<i64>,
    /// Total inodes.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub inodes: Option<i64>,
    /// Used inodes.
    #[serde(default, deserialize_with = "as_int64", skip_serializing_if = "Option::is_none")]
    pub inodes_used: Option<i64>,
}

/// File systems of the container runtime.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStats {
    /// imagefs, which holds images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_fs: Option<FsStats>,
    /// containerfs, which holds writable layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_fs: Option<FsStats>,
}

/// Process IDs of a node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Rlimit {
    /// Time of the Summary. Unlike all other statistics, these are never cached.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub time: Option<Timestamp>,
    /// Maximum number of process IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maxpid: Option<i64>,
    /// Number of process IDs in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curproc: Option<i64>,
}

/// Statistics of a pod.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStats {
    /// Reference to the pod.
    pub pod_ref: PodRef,
    /// Start time.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub start_time: Option<Timestamp>,
    /// Statistics of running containers, in arbitrary order.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub containers: Vec<ContainerStats>,
    /// CPU of the pod's cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuStats>,
    /// Memory of the pod's cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStats>,
    /// Statistics of volumes.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub volume: Vec<VolumeStats>,
    /// Local ephemeral storage of the whole pod: writable layers, logs and local volumes.
    #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage: Option<FsStats>,
    /// Processes of the pod.
    #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
    pub process_stats: Option<ProcessStats>,
}

/// Reference to a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStats {
    /// Container name.
    pub name: String,
    /// Start time.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "whole_seconds")]
    pub start_time: Option<Timestamp>,
    /// CPU of the container's cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuStats>,
    /// Memory of the container's cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStats>,
    /// Writable layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<FsStats>,
    /// Logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<FsStats>,
}

/// Statistics of a volume.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct VolumeStats {
    /// Usage and capacity.
    #[serde(flatten)]
    pub fs: FsStats,
    /// Volume name.
    pub name: String,
}

/// Process statistics of a pod.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ProcessStats {
    /// Number of processes.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// Deserializes a `uint64` as the kubelet's eviction manager reads it: as `int64`. The kubelet
/// computes the available memory without a check, so that it wraps around while a working set
/// exceeds its limit.
fn as_int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let amount = number.as_i64().or_else(|| number.as_u64().map(u64::cast_signed));
    amount.map(Some).ok_or_else(|| D::Error::custom(format_args!("{number} is not an integer")))
}

/// Serializes a time in whole seconds.
fn whole_seconds<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| Timestamp::from_second(time.as_second()).unwrap_or(time)).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_wrapped_around_is_negative() {
        let text = r#"{"node": {"memory": {"availableBytes": 18446744073709547520, "workingSetBytes": 4096}, "fs": {"usedBytes": null}},
            "pods": [{"podRef": {}, "containers": [], "ephemeral-storage": {"usedBytes": 7}}]}"#;
        let sample: Sample = serde_json::from_str(text).unwrap();
        let memory = sample.node.memory.unwrap_or_default();
        assert_eq!((memory.available_bytes, memory.capacity()), (Some(-4096), Some(0)));
        assert_eq!(sample.node.fs.unwrap().used_bytes, None);
        assert_eq!(sample.pods[0].ephemeral_storage.as_ref().and_then(|disk| disk.used_bytes), Some(7));
    }
}
