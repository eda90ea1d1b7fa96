//! What a node's kernel knows: processes and what they use of memory, disk and process numbers, in control groups. It knows containers
//! and pods only as names of groups.

mod container;
mod cost;
mod data;
mod disk;
mod facts;
mod files;
mod groups;
mod host;
mod io;
mod kernel;
mod log;
mod oom;
mod pipe;
mod process;
mod program;
mod shell;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::disk::NoSpace;
use self::disk::{BLOCK, Disk};
use self::groups::{GroupId, Groups, PODS, Pages, ROOT};
use self::kernel::Kernel;
use self::process::{SIGKILL, SIGTERM};
use crate::options::{CgroupVersion, NodeOptions, OptionsError};
use crate::time::{Epoch, Time};
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Where, such as `/data`.
    pub path: String,
    /// The volume's name in its pod.
    pub volume: String,
    /// Whether it lies in memory (`emptyDir.medium: Memory`).
    pub memory: bool,
    /// For one in memory: its size in bytes, as the kubelet sets it; without, half of the node's memory.
    pub size_limit: Option<u64>,
    /// For one that is a part of the node's own files: its path there (`hostPath`).
    pub host: Option<String>,
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
    /// The most tasks that its pod may have (`pids.max` of the pod's group).
    pub pids_limit: Option<u64>,
    /// Where its log lies on the node, such as `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/0.log`; nowhere if empty.
    pub log_path: String,
    /// Whom the kernel prefers to kill: -1000 to 1000.
    pub oom_score_adj: i32,
    /// The kernel kills all of it or nothing (`memory.oom.group`).
    pub oom_group: bool,
    /// Its processes are numbered with those of another (`targetContainerName`, `shareProcessNamespace`): the kernel does not keep signals from
    /// its first one.
    pub shares_pids: bool,
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
        /// The kernel killed it, or another process of it before, for want of memory: containerd's reason is `OOMKilled` either way.
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
    kernel: Kernel,
    processes: u64,
}

impl Machine {
    /// A machine without containers.
    pub fn new(options: &NodeOptions) -> Result<Self, OptionsError> {
        options.check()?;
        let groups = Groups::new(options.memory, system(options));
        let capacity = DiskUse { bytes: options.disk, inodes: options.inodes };
        let used = DiskUse { bytes: options.disk_used, inodes: options.inodes_used };
        let disk = Disk::new(capacity, used);
        let kernel = Kernel::new(options, groups, disk);
        Ok(Self { cgroup: options.cgroup, kernel, processes: options.processes })
    }

    /// Tells it what the calendar says at the model's beginning; programs write it into their logs.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        self.kernel.epoch = epoch;
    }

    /// `MemTotal`, in bytes.
    pub fn memory_total(&self) -> u64 {
        self.kernel.groups.total()
    }

    /// Starts a pod's sandbox (its pause process and its group), if it does not run. A container's start does it too.
    pub fn start_sandbox(&mut self, pod: &str, now: Time) {
        self.kernel.now = self.kernel.now.max(now);
        self.kernel.start_sandbox(pod);
    }

    /// Stops a pod's sandbox. Its group stays until its volumes are removed.
    pub fn stop_sandbox(&mut self, pod: &str, now: Time) {
        self.kernel.now = self.kernel.now.max(now);
        self.kernel.stop_sandbox(pod);
    }

    /// Starts a container. Its writable layer is empty; its pod's volumes are as they are. The pod's group exists from its first container's
    /// start until its volumes are removed.
    pub fn start(&mut self, id: ContainerId, spec: ContainerSpec, now: Time, rng: &mut Rng) {
        self.kernel.start_container(id, spec, now, rng);
        self.kernel.forget_stale();
    }

    /// Sends a signal. Nothing happens to a container that is not running.
    pub fn signal(&mut self, id: &str, signal: Signal, now: Time) {
        self.kernel.now = self.kernel.now.max(now);
        let Some(container) = self.kernel.names.get(id).and_then(|key| self.kernel.containers.get(key))
        else {
            return;
        };
        let first = container.members.iter().copied().find(|pid| self.kernel.processes[pid].inner == 1);
        if let Some(first) = first {
            let sig = match signal {
                Signal::Term => SIGTERM,
                Signal::Kill => SIGKILL,
            };
            self.kernel.signal(first, sig);
        }
        self.kernel.forget_stale();
    }

    /// When a process does something next, or there is something to be told.
    pub fn next(&self) -> Option<Time> {
        if self.kernel.happened.is_empty() { self.kernel.next() } else { Some(self.kernel.now) }
    }

    /// Has the processes do what they do until `now`; tells what can be noticed from outside, in order.
    pub fn run(&mut self, now: Time, _rng: &mut Rng) -> Vec<Happened> {
        while let Some(pid) = self.kernel.pop(now) {
            self.kernel.turn(pid);
        }
        self.kernel.now = self.kernel.now.max(now);
        self.kernel.forget_stale();
        std::mem::take(&mut self.kernel.happened)
    }

    /// What a group uses of memory now; none for a group that is not there.
    pub fn memory(&self, group: &Cgroup) -> Option<MemoryUse> {
        Some(self.kernel.groups.usage(self.group(group)?))
    }

    /// Has it told whenever a group's usage grows over so many bytes. A new mark of the same `key` takes the place of the old one; one for a
    /// group that is not there is forgotten.
    pub fn arm(&mut self, key: &str, group: Cgroup, usage: u64) {
        if let Some(id) = self.group(&group) {
            self.kernel.groups.arm(key, id, group, usage);
        }
    }

    /// Limits what a group may use (`memory.max`): more than that, and the kernel kills within it. Nothing happens to a group that is not there.
    /// A limit on the node's is one that the kubelet does not see, as of the container that is a kind node (`docker update --memory`).
    pub fn limit_memory(&mut self, group: &Cgroup, bytes: Option<u64>) {
        if let Some(id) = self.group(group) {
            self.kernel.groups.set_limit(id, bytes);
        }
    }

    /// The node's one filesystem.
    pub fn filesystem(&self) -> Filesystem {
        self.kernel.disk.filesystem()
    }

    /// What a container wrote into its own layer, with what the runtime made there. It stays until the container is removed.
    pub fn layer(&self, id: &str) -> DiskUse {
        let Some(container) = self.kernel.names.get(id).and_then(|key| self.kernel.containers.get(key))
        else {
            return DiskUse::default();
        };
        let own = self.kernel.disk.used(container.layer);
        DiskUse { bytes: own.bytes + container.made.bytes, inodes: own.inodes + container.made.inodes }
    }

    /// What a container's log takes.
    pub fn log_use(&self, id: &str) -> DiskUse {
        self.kernel.names.get(id).map(|key| self.kernel.log_blocks(*key)).unwrap_or_default()
    }

    /// A container's log: each line with its time and whether it went to stderr. Of a long one, the last lines.
    pub fn log(&self, id: &str) -> &[LogLine] {
        let container = self.kernel.names.get(id).and_then(|key| self.kernel.containers.get(key));
        container.map(|container| container.log.lines()).unwrap_or_default()
    }

    /// What is in a volume of a pod, its own directory included; of one in memory, the memory that its files take.
    pub fn volume(&self, pod: &str, volume: &str) -> DiskUse {
        let store = self.kernel.pods.get(pod).and_then(|pod| pod.volumes.get(volume)).copied();
        let Some(store) = store else { return DiskUse::default() };
        let own = self.kernel.disk.used(store);
        let root = if self.kernel.disk.is_memory(store) { 0 } else { BLOCK };
        DiskUse { bytes: own.bytes + root, inodes: own.inodes + 1 }
    }

    /// Puts a file on the node, at a path from its root on, or takes it away.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_file(&mut self, path: &str, text: Option<&[u8]>) -> Result<(), NoSpace> {
        self.kernel.put_host_file(path, text)
    }

    /// How often files of the node have changed.
    pub fn file_changes(&self) -> u64 {
        self.kernel.disk.changes(self.kernel.host)
    }

    /// The files right in a directory of the node, by name, with what is in them, if that is known: large ones are left out.
    pub fn files(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        self.kernel.host_files(directory)
    }

    /// How many processes a group has: of the node all tasks, threads included, as the kernel counts them against the highest number; of
    /// pods, the processes of their containers.
    pub fn processes(&self, group: &Cgroup) -> u64 {
        let count = |chosen: &dyn Fn(&container::Container) -> bool| {
            let containers = self.kernel.containers.values().filter(|container| chosen(container));
            containers.map(|container| container.members.len() as u64).sum()
        };
        match group {
            Cgroup::Root => self.kernel.tasks.max(self.processes),
            Cgroup::Pods => count(&|_| true),
            Cgroup::Pod(uid) => count(&|container| container.spec.pod == *uid),
            Cgroup::Container(id) => count(&|container| container.id == *id),
        }
    }

    /// The highest process number that there can be.
    pub fn max_pid(&self) -> u64 {
        self.kernel.max_pid
    }

    /// CPU time that a group has used since its beginning.
    pub fn cpu(&self, group: &Cgroup) -> Duration {
        let sum = |chosen: &dyn Fn(&container::Container) -> bool| -> Duration {
            self.kernel
                .containers
                .values()
                .filter(|container| chosen(container))
                .map(|container| container.cpu)
                .sum()
        };
        match group {
            Cgroup::Root | Cgroup::Pods => {
                let pods: Duration = self.kernel.pods.values().map(|pod| pod.cpu).sum();
                // The system's own processes take about a twentieth of a CPU.
                let system =
                    if *group == Cgroup::Root { self.kernel.now.since_start() / 20 } else { Duration::ZERO };
                sum(&|_| true) + pods + self.kernel.cpu + system
            }
            Cgroup::Pod(uid) => {
                let removed = self.kernel.pods.get(uid).map(|pod| pod.cpu).unwrap_or_default();
                sum(&|container| container.spec.pod == *uid) + removed
            }
            Cgroup::Container(id) => sum(&|container| container.id == *id),
        }
    }

    /// Forgets a container that has ended, with its layer and its log. One that runs is killed first, and nothing is told of its end.
    pub fn remove(&mut self, id: &str) {
        let told = self.kernel.happened.len();
        self.signal(id, Signal::Kill, self.kernel.now);
        self.kernel.happened.truncate(told);
        self.kernel.remove_container(id);
    }

    /// Forgets a pod's volumes, its sandbox and its group. Containers that still run are killed.
    pub fn remove_volumes(&mut self, pod: &str) {
        let all = self.kernel.containers.values();
        let running = all.filter(|container| container.spec.pod == pod && container.group.is_some());
        let running: Vec<String> = running.map(|container| container.id.clone()).collect();
        for id in running {
            self.signal(&id, Signal::Kill, self.kernel.now);
        }
        self.kernel.remove_pod(pod);
    }

    /// Has the kernel kill the process of the pods that it would kill if memory ran out now.
    pub fn oom(&mut self, now: Time) {
        self.kernel.now = self.kernel.now.max(now);
        self.kernel.out_of_memory(ROOT);
        self.kernel.forget_stale();
    }

    fn group(&self, group: &Cgroup) -> Option<GroupId> {
        match group {
            Cgroup::Root => Some(ROOT),
            Cgroup::Pods => Some(PODS),
            Cgroup::Pod(uid) => self.kernel.pods.get(uid).map(|pod| pod.group),
            Cgroup::Container(id) => self.kernel.containers.get(self.kernel.names.get(id)?)?.group,
        }
    }
}

/// What the node uses by itself: its working set as the options have it, recorded as five sixths processes; and page cache, of which it lets go.
fn system(options: &NodeOptions) -> Pages {
    let anon = options.memory_used / 6 * 5;
    let inactive = options.memory_used.min((options.memory - options.memory_used) / 4);
    Pages { anon, kernel: options.memory_used - anon, inactive, ..Pages::default() }
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
    /// Whether its end is not the end of a line (`P` in the log's file).
    pub partial: bool,
}
