//! The types of containers and pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ids::{CgroupId, FileId, Pid, TreeId};
use super::log::ContainerLog;
use super::types::{ContainerSpec, DiskUse};

/// A container, running or exited.
pub(super) struct Container {
    pub id: String,
    pub spec: ContainerSpec,
    /// `None` once the container has exited.
    pub cgroup: Option<CgroupId>,
    /// Kernel memory of the cgroup beside its processes, in bytes.
    pub kernel: u64,
    /// The file that stands for the image in the page cache.
    pub image_file: FileId,
    /// The writable layer.
    pub layer: TreeId,
    /// The mount points in the writable layer.
    pub mount_points: DiskUse,
    pub log: ContainerLog,
    /// Disk space reserved for the log; none before anything is written.
    pub log_space: DiskUse,
    pub pids: BTreeSet<Pid>,
    /// Number of processes and their threads.
    pub tasks: u64,
    pub last_ns_pid: u64,
    pub oom_killed: bool,
    pub cpu: Duration,
}

/// A pod.
pub(super) struct Pod {
    pub cgroup: CgroupId,
    pub volumes: BTreeMap<String, TreeId>,
    pub shm: Option<TreeId>,
    /// `pids.max`
    pub pids_limit: Option<u64>,
    /// True while the pause process runs.
    pub has_sandbox: bool,
    /// CPU time of removed containers.
    pub removed_cpu: Duration,
}
