//! What a cluster is made of.

use std::str::FromStr;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use jiff::Timestamp;

use crate::fault::Fault;

/// All that makes a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// All chance comes from it.
    pub seed: u64,
    /// What the calendar says when the cluster begins.
    pub epoch: Timestamp,
    /// The nodes.
    pub nodes: Vec<NodeOptions>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// How long events are kept after they were last told (`--event-ttl` of kube-apiserver).
    pub event_ttl: Duration,
}

impl Options {
    /// A cluster in which nothing goes wrong, and events are kept for an hour, as a real API server does.
    pub fn new(seed: u64, epoch: Timestamp, nodes: Vec<NodeOptions>) -> Self {
        Self { seed, epoch, nodes, faults: Vec::new(), event_ttl: Duration::from_secs(60 * 60) }
    }
}

/// A node and its kubelet.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Its name, a DNS label.
    pub name: String,
    /// Labels beside those that a kubelet sets.
    pub labels: Vec<(String, String)>,
    /// What its kubelet reports, 1.27 to 1.36.
    pub version: KubeletVersion,
    /// Its kernel's control groups.
    pub cgroup: CgroupVersion,
    /// `MemTotal`, in bytes.
    pub memory: u64,
    /// What the node uses without any pod, in bytes of working set.
    pub memory_used: u64,
    /// The size of its one filesystem, in bytes.
    pub disk: u64,
    /// What is used of the filesystem before any pod, in bytes.
    pub disk_used: u64,
    /// The filesystem's inodes.
    pub inodes: u64,
    /// Those in use before any pod.
    pub inodes_used: u64,
    /// The highest process number, as the kubelet reads it from `pid_max` and `threads-max`.
    pub max_pid: u64,
    /// Processes before any pod.
    pub processes: u64,
    /// Its CPUs.
    pub cpus: u32,
}

impl NodeOptions {
    /// A node as kind makes them on a machine with 16 GiB of memory and a disk of 100 GiB.
    pub fn new(name: impl Into<String>, version: KubeletVersion) -> Self {
        const GIB: u64 = 1 << 30;
        Self {
            name: name.into(),
            labels: Vec::new(),
            version,
            cgroup: CgroupVersion::V2,
            memory: 16 * GIB,
            memory_used: 90 << 20,
            disk: 100 * GIB,
            disk_used: 20 * GIB,
            inodes: 6_553_600,
            inodes_used: 700_000,
            max_pid: 120_000,
            processes: 700,
            cpus: 4,
        }
    }
}

impl NodeOptions {
    /// Refuses sizes that no node has.
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
            // The kernel's own least (PIDS_PER_CPU_MIN and RESERVED_PIDS, kernel/pid.c).
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

const LEAST_MEMORY: u64 = 64 << 20;
const LEAST_DISK: u64 = 64 << 20;
const LEAST_PIDS: u64 = 301;

/// The kernel's control groups: they decide how a kubelet learns of memory pressure, and whom the kernel kills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CgroupVersion {
    /// A kubelet can be notified when memory runs low; the kernel kills one process.
    V1,
    /// No notification; since kubelet 1.28 the kernel kills a whole container.
    #[default]
    V2,
}

impl FromStr for CgroupVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "v1" | "1" => Ok(Self::V1),
            "v2" | "2" => Ok(Self::V2),
            _ => Err(format!("{text:?} is no cgroup version: write v1 or v2")),
        }
    }
}

/// Options of which no cluster can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct OptionsError {
    /// Which option, such as `node worker-2: memory`.
    pub place: String,
    /// What is wrong with it, and what would do.
    pub problem: String,
}
