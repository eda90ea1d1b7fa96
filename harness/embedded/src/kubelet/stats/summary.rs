//! Summary (`stats/v1alpha1`).

use evictlab_rules::summary as rules;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// Time that is serialized with whole seconds and used with full precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetaTime(pub Timestamp);

impl Serialize for MetaTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = Timestamp::from_second(self.0.as_second()).unwrap_or(self.0);
        serializer.collect_str(&whole)
    }
}

/// Response of `stats/summary`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// Node.
    pub node: Node,
    /// Pods with a running container, in random order.
    pub pods: Vec<Pod>,
}

/// Statistics of the node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    /// Name.
    pub node_name: String,
    /// System cgroups, and the cgroup of all pods.
    pub system_containers: Vec<System>,
    /// Start time of the node.
    pub start_time: MetaTime,
    /// CPU.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// File system of the kubelet.
    pub fs: Fs,
    /// File systems of the runtime.
    pub runtime: Runtime,
    /// Process ids.
    pub rlimit: Rlimit,
}

/// Statistics of a system cgroup.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct System {
    /// `runtime` or `pods`.
    pub name: &'static str,
    /// Start time.
    pub start_time: MetaTime,
    /// CPU.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
}

/// Statistics of a pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pod {
    /// Reference to the pod.
    pub pod_ref: PodRef,
    /// Start time.
    pub start_time: MetaTime,
    /// Running containers, in random order.
    pub containers: Vec<Container>,
    /// CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory of the pod's cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Volumes that were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume: Vec<Volume>,
    /// Ephemeral storage: writable layers, logs and volumes.
    #[serde(rename = "ephemeral-storage")]
    pub ephemeral_storage: Fs,
    /// Processes.
    #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
    pub process_stats: Option<Processes>,
}

/// Reference to a pod.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PodRef {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Uid.
    pub uid: String,
}

/// Statistics of a container.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Container {
    /// Name.
    pub name: String,
    /// Start time.
    pub start_time: MetaTime,
    /// CPU.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// Writable layer.
    pub rootfs: Fs,
    /// Logs.
    pub logs: Fs,
}

/// CPU usage.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cpu {
    /// Time of the measurement.
    pub time: MetaTime,
    /// Usage in nanocores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_nano_cores: Option<u64>,
    /// Total usage in nanoseconds.
    pub usage_core_nano_seconds: u64,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    /// Time of the measurement.
    pub time: MetaTime,
    /// Limit minus working set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// Usage, including caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_bytes: Option<u64>,
    /// Working set: usage minus inactive page cache.
    pub working_set_bytes: u64,
    /// Anonymous memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
}

/// Statistics of a file system or a part of it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fs {
    /// Time of the measurement.
    pub time: MetaTime,
    /// Free bytes.
    pub available_bytes: u64,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Used bytes.
    pub used_bytes: u64,
    /// Free inodes.
    pub inodes_free: u64,
    /// Number of inodes.
    pub inodes: u64,
    /// Used inodes.
    pub inodes_used: u64,
}

/// File systems of the runtime.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Runtime {
    /// File system of images.
    pub image_fs: Fs,
    /// File system of writable layers (1.29 and newer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_fs: Option<Fs>,
}

/// Process ids.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Rlimit {
    /// Time of the measurement.
    pub time: MetaTime,
    /// Maximum process id.
    pub maxpid: u64,
    /// Number of processes.
    pub curproc: u64,
}

/// Statistics of a volume.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Volume {
    /// File system.
    #[serde(flatten)]
    pub fs: Fs,
    /// Name.
    pub name: String,
}

/// Process statistics of a pod.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Processes {
    /// Number of processes.
    pub process_count: u64,
}

impl Summary {
    /// Returns the statistics that the rules need, with full precision.
    pub(crate) fn sample(&self) -> rules::Sample {
        let node = &self.node;
        let system = |system: &System| rules::SystemContainer {
            name: system.name.to_owned(),
            memory: Some(memory(&system.memory)),
        };
        rules::Sample {
            t: 0.0,
            node: rules::NodeStats {
                memory: Some(memory(&node.memory)),
                fs: Some(fs(&node.fs)),
                runtime: Some(rules::RuntimeStats {
                    image_fs: Some(fs(&node.runtime.image_fs)),
                    container_fs: node.runtime.container_fs.as_ref().map(fs),
                }),
                rlimit: Some(rules::Rlimit {
                    time: Some(node.rlimit.time.0),
                    maxpid: Some(signed(node.rlimit.maxpid)),
                    curproc: Some(signed(node.rlimit.curproc)),
                }),
                system_containers: node.system_containers.iter().map(system).collect(),
            },
            pods: self.pods.iter().map(pod).collect(),
        }
    }
}

fn pod(pod: &Pod) -> rules::PodStats {
    let container = |container: &Container| rules::ContainerStats {
        name: container.name.clone(),
        start_time: Some(container.start_time.0),
        memory: Some(memory(&container.memory)),
        rootfs: Some(fs(&container.rootfs)),
        logs: Some(fs(&container.logs)),
    };
    let volume = |volume: &Volume| rules::VolumeStats { name: volume.name.clone(), fs: fs(&volume.fs) };
    rules::PodStats {
        pod_ref: rules::PodRef {
            name: pod.pod_ref.name.clone(),
            namespace: pod.pod_ref.namespace.clone(),
            uid: pod.pod_ref.uid.clone(),
        },
        containers: pod.containers.iter().map(container).collect(),
        memory: pod.memory.as_ref().map(memory),
        volume: pod.volume.iter().map(volume).collect(),
        ephemeral_storage: Some(fs(&pod.ephemeral_storage)),
        process_stats: pod
            .process_stats
            .map(|stats| rules::ProcessStats { process_count: Some(signed(stats.process_count)) }),
    }
}

fn memory(memory: &Memory) -> rules::MemoryStats {
    rules::MemoryStats {
        time: Some(memory.time.0),
        available_bytes: memory.available_bytes.map(signed),
        working_set_bytes: Some(signed(memory.working_set_bytes)),
    }
}

fn fs(fs: &Fs) -> rules::FsStats {
    rules::FsStats {
        time: Some(fs.time.0),
        available_bytes: Some(signed(fs.available_bytes)),
        capacity_bytes: Some(signed(fs.capacity_bytes)),
        used_bytes: Some(signed(fs.used_bytes)),
        inodes_free: Some(signed(fs.inodes_free)),
        inodes: Some(signed(fs.inodes)),
        inodes_used: Some(signed(fs.inodes_used)),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
