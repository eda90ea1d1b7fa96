//! What a node's kernel knows: processes and what they use of memory, disk and process numbers, in control groups. It knows containers
//! and pods only as names of groups.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::options::{CgroupVersion, NodeOptions, OptionsError};
use crate::time::Time;
use crate::world::Rng;

/// A container, unique in its node for ever. The kubelet writes it as 64 hexadecimal digits after `containerd://`.
pub type ContainerId = String;
/// A pod's uid.
pub type PodUid = String;

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cgroup {
    /// The node.
    Root,
    /// All pods (`kubepods`).
    Pods,
    /// One pod.
    Pod(PodUid),
    /// One container.
    Container(ContainerId),
}

/// What a group uses of memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// All that is charged to the group, page cache included.
    pub usage: u64,
    /// Usage without inactive page cache: what the kubelet goes by.
    pub working_set: u64,
    /// Anonymous memory.
    pub rss: u64,
}

/// What is used of a filesystem, or by a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// In bytes.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

/// A filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filesystem {
    /// Its size.
    pub capacity: DiskUse,
    /// What is used of it.
    pub used: DiskUse,
}

/// A volume as a container sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where, such as `/data`.
    pub path: String,
    /// The volume's name in its pod.
    pub volume: String,
    /// Whether it lies in memory (`emptyDir.medium: Memory`).
    pub memory: bool,
}

/// A container to be started.
#[derive(Clone, Debug, Default)]
pub struct ContainerSpec {
    /// Its pod.
    pub pod: PodUid,
    /// Its image, which says what runs if no command does.
    pub image: String,
    /// `command`, instead of the image's entrypoint; `$(NAME)` is expanded already.
    pub command: Vec<String>,
    /// `args`, instead of the image's.
    pub args: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Its volumes.
    pub mounts: Vec<Mount>,
    /// `memory.max`, in bytes.
    pub memory_limit: Option<u64>,
    /// The most processes that it may have (`pids.max`).
    pub pids_limit: Option<u64>,
    /// Whom the kernel prefers to kill: -1000 to 1000.
    pub oom_score_adj: i32,
    /// The kernel kills all of it or nothing (`memory.oom.group`).
    pub oom_group: bool,
}

/// What the outside notices of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A container's first process has ended, and with it the container.
    Exited {
        /// Which.
        container: ContainerId,
        /// Its exit status; 128 + the signal for one that was killed.
        code: i32,
        /// The kernel killed it for want of memory.
        oom: bool,
        /// When.
        at: Time,
    },
    /// The kernel killed a process of a container for want of memory; the container may live on.
    OomKilled {
        /// The process's name, such as `agnhost`.
        process: String,
        /// Its number.
        pid: u64,
        /// Its container.
        container: ContainerId,
        /// When.
        at: Time,
    },
    /// A group's usage grew over a mark that was armed (`memory.usage_in_bytes` by eventfd, cgroup v1).
    Crossed {
        /// The group.
        group: Cgroup,
        /// The mark, in bytes of usage.
        mark: u64,
        /// When.
        at: Time,
    },
}

/// A signal to a container's first process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// To end, which it may ignore.
    Term,
    /// To end at once.
    Kill,
}

/// The machine of a node.
pub struct Machine {
    /// Its control groups.
    pub cgroup: CgroupVersion,
}

impl Machine {
    /// A machine without containers.
    pub fn new(options: &NodeOptions) -> Result<Self, OptionsError> {
        Ok(Self { cgroup: options.cgroup })
    }

    /// `MemTotal`, in bytes.
    pub fn memory_total(&self) -> u64 {
        0
    }

    /// Starts a container. Its writable layer is empty; its pod's volumes are as they are.
    pub fn start(&mut self, _id: ContainerId, _spec: ContainerSpec, _now: Time, _rng: &mut Rng) {}

    /// Sends a signal. Nothing happens to a container that is not running.
    pub fn signal(&mut self, _id: &str, _signal: Signal, _now: Time) {}

    /// When a process does something next.
    pub fn next(&self) -> Option<Time> {
        None
    }

    /// Has the processes do what they do until `now`; tells what can be noticed from outside, in order.
    pub fn run(&mut self, _now: Time, _rng: &mut Rng) -> Vec<Happened> {
        Vec::new()
    }

    /// What a group uses of memory now; none for a group that is not there.
    pub fn memory(&self, _group: &Cgroup) -> Option<MemoryUse> {
        None
    }

    /// Has it told when a group's usage grows over so many bytes. A new mark of the same `key` takes the place of the old one.
    pub fn arm(&mut self, _key: &str, _group: Cgroup, _usage: u64) {}

    /// The node's one filesystem.
    pub fn filesystem(&self) -> Filesystem {
        Filesystem::default()
    }

    /// What a container wrote into its own layer. It stays until the container is removed.
    pub fn layer(&self, _id: &str) -> DiskUse {
        DiskUse::default()
    }

    /// What a container's log takes.
    pub fn log_use(&self, _id: &str) -> DiskUse {
        DiskUse::default()
    }

    /// A container's log: each line with its time and whether it went to stderr.
    pub fn log(&self, _id: &str) -> &[LogLine] {
        &[]
    }

    /// What is in a volume of a pod.
    pub fn volume(&self, _pod: &str, _volume: &str) -> DiskUse {
        DiskUse::default()
    }

    /// How many processes a group has.
    pub fn processes(&self, _group: &Cgroup) -> u64 {
        0
    }

    /// The highest process number that there can be.
    pub fn max_pid(&self) -> u64 {
        0
    }

    /// CPU time that a group has used since its beginning.
    pub fn cpu(&self, _group: &Cgroup) -> Duration {
        Duration::ZERO
    }

    /// Forgets a container that has ended, with its layer and its log.
    pub fn remove(&mut self, _id: &str) {}

    /// Forgets a pod's volumes.
    pub fn remove_volumes(&mut self, _pod: &str) {}

    /// Has the kernel kill the process of the pods that it would kill if memory ran out now.
    pub fn oom(&mut self, _now: Time) {}
}

/// A line of a container's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub at: Time,
    /// Whether it went to stderr.
    pub stderr: bool,
    /// Without its end.
    pub text: String,
}
