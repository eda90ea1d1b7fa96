//! Options of a cluster and its nodes.

use std::time::Duration;

use evictlab_fault::Fault;
pub use evictlab_rules::CgroupVersion;
use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::{GIB, MIB};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::defect::Defects;

/// Options of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Calendar time at the start of the cluster.
    pub epoch: Timestamp,
    /// Nodes.
    pub nodes: Vec<NodeOptions>,
    /// Faults to inject; their times count from the start.
    pub faults: Vec<Fault>,
    /// Retention of events after their last occurrence (`--event-ttl` of kube-apiserver).
    pub event_ttl: Duration,
}

impl ClusterOptions {
    /// Returns options without faults, and with the API server's default event retention of one
    /// hour.
    pub fn new(seed: u64, epoch: Timestamp, nodes: Vec<NodeOptions>) -> Self {
        Self { seed, epoch, nodes, faults: Vec::new(), event_ttl: Duration::from_secs(60 * 60) }
    }
}

/// Options of a node and its kubelet.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Name, a DNS label.
    pub name: String,
    /// Kubelet version, 1.27 to 1.37.
    pub version: KubeletVersion,
    /// Version of the kernel's control groups. On version 1, the kubelet can register for memory
    /// notifications, and the OOM killer kills one process. On version 2, since kubelet 1.28, the
    /// OOM killer kills all processes of a container.
    pub cgroup: CgroupVersion,
    /// `MemTotal`, in bytes.
    pub memory: u64,
    /// Working set of the node without pods, in bytes.
    pub memory_used: u64,
    /// Size of nodefs, the file system of the node, in bytes.
    pub disk: u64,
    /// Used part of the file system without pods, in bytes.
    pub disk_used: u64,
    /// Inodes of the file system.
    pub inodes: u64,
    /// Used inodes without pods.
    pub inodes_used: u64,
    /// Highest process id, as the kubelet reads it from `pid_max` and `threads-max`.
    pub max_pid: u64,
    /// Number of processes without pods.
    pub processes: u64,
    /// Number of CPUs.
    pub cpus: u32,
    /// Defects of the kubelet.
    pub defects: Defects,
    /// Changes to the kubelet configuration of kind's nodes: maps are merged, `null` removes a key.
    pub kubelet_config: Map<String, Value>,
}

impl NodeOptions {
    /// Returns the options of a kind node on a machine with 16 GiB of memory and a 100 GiB disk.
    pub fn new(name: impl Into<String>, version: KubeletVersion) -> Self {
        Self {
            name: name.into(),
            version,
            cgroup: CgroupVersion::V2,
            memory: 16 * GIB,
            memory_used: 90 * MIB,
            disk: 100 * GIB,
            disk_used: 20 * GIB,
            inodes: 6_553_600,
            inodes_used: 700_000,
            max_pid: 120_000,
            processes: 700,
            cpus: 4,
            defects: Defects::default(),
            kubelet_config: Map::new(),
        }
    }
}

impl NodeOptions {
    /// Rejects sizes that no node can have.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let refuse = |what: &str, problem: String| {
            Err(OptionsError { place: format!("node {}: {what}", self.name), problem })
        };
        if self.memory < LEAST_MEMORY {
            return refuse(
                "memory",
                format!("{} bytes are too few for a node: give it 64Mi or more", self.memory),
            );
        }
        if self.memory_used >= self.memory {
            let problem = format!(
                "the node itself would use {} of {} bytes: leave some",
                self.memory_used, self.memory
            );
            return refuse("memory used", problem);
        }
        if self.disk < LEAST_DISK {
            return refuse(
                "disk",
                format!("{} bytes are too few for a node: give it 64Mi or more", self.disk),
            );
        }
        if self.disk_used > self.disk {
            let problem = format!("{} bytes of {} cannot be used", self.disk_used, self.disk);
            return refuse("disk used", problem);
        }
        if self.inodes == 0 {
            return refuse("inodes", "a filesystem without inodes holds nothing".to_owned());
        }
        if self.inodes_used > self.inodes {
            return refuse(
                "inodes used",
                format!("{} inodes of {} cannot be used", self.inodes_used, self.inodes),
            );
        }
        if self.max_pid < LEAST_PIDS {
            // The kernel's minimum (`PIDS_PER_CPU_MIN` and `RESERVED_PIDS`, kernel/pid.c).
            return refuse(
                "pids",
                format!("{} process numbers are too few: the kernel wants 301 or more", self.max_pid),
            );
        }
        if self.processes >= self.max_pid {
            let problem = format!("{} processes leave none of {} numbers", self.processes, self.max_pid);
            return refuse("processes", problem);
        }
        if self.cpus == 0 {
            return refuse("cpus", "a node has one CPU or more".to_owned());
        }
        Ok(())
    }
}

const LEAST_MEMORY: u64 = 64 * MIB;
const LEAST_DISK: u64 = 64 * MIB;
const LEAST_PIDS: u64 = 301;

/// Options that cannot make a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct OptionsError {
    /// Option, such as `node worker-2: memory`.
    pub place: String,
    /// Problem and its solution.
    pub problem: String,
}
