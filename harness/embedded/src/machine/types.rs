//! The types of a machine's interface.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, AddAssign, SubAssign};

use evictlab_rules::quantity::KIB;

use super::ids::ExecId;
use crate::sim::SimTime;

/// The ID of a container, unique on its node: 64 hexadecimal digits, without `containerd://`.
pub type ContainerId = String;
/// The UID of a pod.
pub type PodUid = String;

/// A cgroup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cgroup {
    /// The root: the whole node.
    Root,
    /// The parent of all pods (`kubepods`).
    Pods,
    /// A pod.
    Pod(PodUid),
    /// A container.
    Container(ContainerId),
}

/// The memory of a cgroup, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// All memory that is charged to the cgroup, page cache included.
    pub usage: u64,
    /// Usage less inactive page cache. The kubelet's eviction decisions use it.
    pub working_set: u64,
    /// Anonymous memory.
    pub rss: u64,
}

/// The space that files take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskUse {
    /// Bytes.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

impl DiskUse {
    /// Returns the difference, and 0 instead of a negative number.
    pub(crate) fn saturating_sub(self, less: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(less.bytes), inodes: self.inodes.saturating_sub(less.inodes) }
    }
}

impl Add for DiskUse {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self { bytes: self.bytes + more.bytes, inodes: self.inodes + more.inodes }
    }
}

impl AddAssign for DiskUse {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

impl SubAssign for DiskUse {
    fn sub_assign(&mut self, less: Self) {
        self.bytes -= less.bytes;
        self.inodes -= less.inodes;
    }
}

impl Sum for DiskUse {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Self::add)
    }
}

/// The size and usage of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filesystem {
    /// Its size.
    pub capacity: DiskUse,
    /// The part that is in use.
    pub used: DiskUse,
}

/// A volume mount of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The mount path, such as `/data`.
    pub path: String,
    /// The name of the volume in its pod.
    pub volume: String,
    /// True for a tmpfs (`emptyDir.medium: Memory`).
    pub memory: bool,
    /// The size of a tmpfs in bytes; half of the node's memory by default.
    pub size_limit: Option<u64>,
    /// The path on the node, of a `hostPath` volume.
    pub host: Option<String>,
}

/// File system of images, apart from nodefs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imagefs {
    /// Size, in bytes.
    pub bytes: u64,
    /// Number of inodes; that of a new ext4 by default.
    pub inodes: Option<u64>,
    /// True for a dedicated imagefs, which has the writable layers, too; false for a split one, as
    /// of CRI-O with an image store of its own.
    pub has_layers: bool,
}

impl Imagefs {
    /// Bytes per inode of a new ext4 (`inode_ratio` in `/etc/mke2fs.conf`).
    const BYTES_PER_INODE: u64 = 16 * KIB;

    /// Returns the size in bytes and inodes.
    pub(crate) fn capacity(self) -> DiskUse {
        let inodes = self.inodes.unwrap_or(self.bytes / Self::BYTES_PER_INODE);
        DiskUse { bytes: self.bytes, inodes }
    }
}

/// A container to start.
#[derive(Clone, Debug, Default)]
pub struct ContainerSpec {
    /// The UID of its pod.
    pub pod: PodUid,
    /// Its image. Its entrypoint runs if `command` is empty.
    pub image: String,
    /// `command`, with `$(NAME)` expanded. Replaces the entrypoint of the image.
    pub command: Vec<String>,
    /// `args`, with `$(NAME)` expanded. Replaces the arguments of the image.
    pub args: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Its volume mounts.
    pub mounts: Vec<Mount>,
    /// `memory.max`, in bytes.
    pub memory_limit: Option<u64>,
    /// `memory.high` on cgroup v2, in bytes. The machine does not throttle.
    pub memory_high: Option<u64>,
    /// `pids.max` of the pod's cgroup: the largest number of tasks in the pod.
    pub pids_limit: Option<u64>,
    /// The path of the log on the node, such as `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/0.log`.
    /// Empty if the log has no file.
    pub log_path: String,
    /// The OOM score adjustment, from -1000 to 1000.
    pub oom_score_adj: i32,
    /// True if an OOM kill ends all processes of the container (`memory.oom.group`).
    pub oom_group: bool,
    /// True if the container shares a PID namespace (`targetContainerName`,
    /// `shareProcessNamespace`). Its first process is not the namespace's init then, and gets
    /// signals that it does not handle.
    pub shares_pids: bool,
}

/// An event of a machine that the kubelet or the runtime notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MachineEvent {
    /// The first process of a container exited, and the container with it.
    ContainerExited {
        /// The container.
        container: ContainerId,
        /// The exit status; 128 plus the signal for a process that was killed.
        code: i32,
        /// True if an OOM kill hit any process of the container. containerd reports `OOMKilled`.
        oom: bool,
        /// The time of the exit.
        at: SimTime,
    },
    /// The OOM killer killed a process, and with `memory.oom.group` the others of its container:
    /// one event for each invocation. The container may still run.
    OomKilled {
        /// The name of the process that was chosen, such as `agnhost`.
        process: String,
        /// Its PID.
        pid: u64,
        /// Its container.
        container: ContainerId,
        /// True if the root cgroup had no memory left, false if another one reached its limit.
        is_of_root: bool,
    },
    /// A command in a container exited.
    ExecExited {
        /// The command.
        exec: ExecId,
    },
    /// The usage of a cgroup rose above a threshold (eventfd on `memory.usage_in_bytes`, cgroup
    /// v1).
    ThresholdCrossed {
        /// The cgroup.
        group: Cgroup,
        /// The threshold, in bytes of usage.
        threshold: u64,
        /// The time of the crossing.
        at: SimTime,
    },
}

/// An output of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
}

/// A line of a container's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// Time of the write.
    pub at: SimTime,
    /// Stream of the write.
    pub stream: OutputStream,
    /// The text without the newline.
    pub text: String,
    /// True if the line continues in the next entry (`P` in the log file).
    pub partial: bool,
}
