//! The Summary as it is served (`stats/v1alpha1`).

use evictlab_rules::pod as rules;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A moment that is served with whole seconds, and used with all it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub Timestamp);

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = Timestamp::from_second(self.0.as_second()).unwrap_or(self.0);
        serializer.collect_str(&whole)
    }
}

/// One answer.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The node.
    pub node: Node,
    /// Its pods with a running container, in no order that means anything.
    pub pods: Vec<Pod>,
}

/// The node's own figures.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub node_name: String,
    /// The groups beside the pods, and the one above them.
    pub system_containers: Vec<System>,
    /// When the node began.
    pub start_time: Stamp,
    /// Processors.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// Disk pressure figures (1.34 and newer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// The network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The kubelet's file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<Fs>,
    /// The runtime's file systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Process ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rlimit: Option<Rlimit>,
    /// Swap, of which there is none.
    pub swap: Swap,
}

/// A system group.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct System {
    /// `runtime` or `pods`.
    pub name: &'static str,
    /// When it began.
    pub start_time: Stamp,
    /// Processors.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// Disk pressure figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// Swap.
    pub swap: Swap,
}

/// A pod's figures.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Which pod.
    pub pod_ref: PodRef,
    /// When it began.
    pub start_time: Stamp,
    /// Its running containers, in no order that means anything.
    pub containers: Vec<Container>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory of its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Disk pressure figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// The network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Its volumes, once they were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume: Vec<Volume>,
    /// All that it has on the node's disk.
    #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage: Option<Fs>,
    /// Its processes.
    #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
    pub process_stats: Option<Processes>,
    /// Swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<Swap>,
}

/// Which pod.
#[derive(Clone, Debug, Serialize)]
pub struct PodRef {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// The uid.
    pub uid: String,
}

/// A container's figures.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// The name.
    pub name: String,
    /// When it started.
    pub start_time: Stamp,
    /// Processors.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Memory,
    /// Disk pressure figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<Io>,
    /// What it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<Fs>,
    /// What it logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<Fs>,
    /// Swap.
    pub swap: Swap,
}

/// Processors.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// When it was measured.
    pub time: Stamp,
    /// Billionths of a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_nano_cores: Option<u64>,
    /// Since the beginning.
    pub usage_core_nano_seconds: u64,
    /// Stalls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<Psi>,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// When it was measured.
    pub time: Stamp,
    /// What is left of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// All of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_bytes: Option<u64>,
    /// What cannot be reclaimed at once.
    pub working_set_bytes: u64,
    /// Anonymous memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// Page faults, which the model does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<u64>,
    /// Those that read from disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_page_faults: Option<u64>,
    /// Stalls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<Psi>,
}

/// Disk pressure figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Io {
    /// When it was measured.
    pub time: Stamp,
    /// Stalls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psi: Option<Psi>,
}

/// Stalls, of which the model knows none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Psi {
    full: Stall,
    some: Stall,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Stall {
    total: u64,
    avg10: u64,
    avg60: u64,
    avg300: u64,
}

/// The network, of which the model counts nothing.
#[derive(Clone, Debug, Serialize)]
pub struct Network {
    /// When it was measured.
    pub time: Stamp,
    /// The default interface.
    #[serde(flatten)]
    pub default: Interface,
    /// All of them.
    pub interfaces: [Interface; 1],
}

/// An interface.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    name: &'static str,
    rx_bytes: u64,
    rx_errors: u64,
    tx_bytes: u64,
    tx_errors: u64,
}

/// A file system, or a part of one.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fs {
    /// When it was measured.
    pub time: Stamp,
    /// Bytes left.
    pub available_bytes: u64,
    /// Bytes in all.
    pub capacity_bytes: u64,
    /// Bytes used.
    pub used_bytes: u64,
    /// Inodes left.
    pub inodes_free: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Inodes used.
    pub inodes_used: u64,
}

/// The runtime's file systems.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Runtime {
    /// Where images are.
    pub image_fs: Fs,
    /// Where containers write (1.29 and newer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_fs: Option<Fs>,
}

/// Process ids.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rlimit {
    /// Now.
    pub time: Stamp,
    /// The most there can be.
    pub maxpid: u64,
    /// Those there are.
    pub curproc: u64,
}

/// A volume's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Volume {
    /// The figures.
    #[serde(flatten)]
    pub fs: Fs,
    /// The name.
    pub name: String,
}

/// A pod's processes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Processes {
    /// How many.
    pub process_count: u64,
}

/// Swap.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Swap {
    /// When it was measured.
    pub time: Stamp,
    /// What is left, where that is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_available_bytes: Option<u64>,
    /// What is used.
    pub swap_usage_bytes: u64,
}

impl Network {
    /// `eth0` without traffic.
    pub fn still(time: Stamp) -> Self {
        let eth0 = Interface { name: "eth0", rx_bytes: 0, rx_errors: 0, tx_bytes: 0, tx_errors: 0 };
        Self { time, default: eth0, interfaces: [eth0] }
    }
}

impl Summary {
    /// What of it the rules look at, times with all they have.
    pub fn sample(&self) -> rules::Sample {
        let node = &self.node;
        let system = |system: &System| rules::SystemContainer {
            name: system.name.to_owned(),
            memory: Some(memory(&system.memory)),
        };
        rules::Sample {
            t: 0.0,
            node: rules::NodeStats {
                memory: Some(memory(&node.memory)),
                fs: node.fs.as_ref().map(fs),
                runtime: node.runtime.as_ref().map(|runtime| rules::RuntimeStats {
                    image_fs: Some(fs(&runtime.image_fs)),
                    container_fs: runtime.container_fs.as_ref().map(fs),
                }),
                rlimit: node.rlimit.map(|rlimit| rules::Rlimit {
                    time: Some(rlimit.time.0),
                    maxpid: Some(signed(rlimit.maxpid)),
                    curproc: Some(signed(rlimit.curproc)),
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
        rootfs: container.rootfs.as_ref().map(fs),
        logs: container.logs.as_ref().map(fs),
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
        ephemeral_storage: pod.ephemeral_storage.as_ref().map(fs),
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
