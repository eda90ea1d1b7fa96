//! The interface of a machine.

use std::time::Duration;

use evictlab_rules::threshold::FsLayout;

use super::cgroups::{CgroupTree, Pages};
use super::container::Container;
use super::disk::{BLOCK, Disk, NoSpace};
use super::exec_result::{ExecError, ExecResult};
use super::ids::{CgroupId, ExecId, PODS_CGROUP, ROOT_CGROUP};
use super::kernel::Kernel;
use super::step::{SIGKILL, SignalNumber};
use super::types::{
    Cgroup, ContainerId, ContainerSpec, DiskUse, Filesystem, Imagefs, LogLine, MachineEvent, MemoryUse,
};
use crate::options::{NodeOptions, OptionsError};
use crate::sim::Rng;
use crate::sim::{Epoch, SimTime};

/// Path of the termination log in a container, below `/`.
const TERMINATION_LOG: &str = "dev/termination-log";
/// Maximum length of a termination message, in bytes (`MaxContainerTerminationMessageLength`,
/// pkg/kubelet/container).
const MAX_TERMINATION_MESSAGE: usize = 4096;

/// The machine of a node. Its kernel advances with the time of the simulation.
pub struct Machine {
    kernel: Kernel,
    /// File system dedicated to images; `None` if images are on nodefs.
    imagefs: Option<Imagefs>,
    /// The number of tasks outside of pods.
    system_tasks: u64,
}

impl Machine {
    /// Returns a machine without containers.
    ///
    /// # Errors
    /// Options that no node can have.
    pub(crate) fn new(options: &NodeOptions) -> Result<Self, OptionsError> {
        options.check()?;
        let cgroups = CgroupTree::new(options.memory, system_pages(options));
        let capacity = DiskUse { bytes: options.disk, inodes: options.inodes };
        let used = DiskUse { bytes: options.disk_used, inodes: options.inodes_used };
        let kernel = Kernel::new(options, cgroups, Disk::new(capacity, used));
        Ok(Self { kernel, imagefs: None, system_tasks: options.processes })
    }

    /// Sets the date at which simulated time begins. Log lines contain dates.
    pub(crate) fn set_epoch(&mut self, epoch: Epoch) {
        self.kernel.epoch = epoch;
    }

    /// Returns `MemTotal`, in bytes.
    pub fn memory_total(&self) -> u64 {
        self.kernel.cgroups.total()
    }

    /// Returns the memory that huge pages reserve, in bytes. [`Machine::memory_total`] includes it,
    /// and no cgroup is charged for it.
    pub(crate) fn huge_pages(&self) -> u64 {
        self.kernel.cgroups.huge_pages()
    }

    /// Reserves memory for huge pages of 2 MiB, instead of what is reserved.
    pub(crate) fn reserve_huge_pages(&mut self, bytes: u64) {
        self.kernel.cgroups.reserve_huge_pages(bytes);
    }

    /// Starts the sandbox of a pod: its pause process and its cgroup. Does nothing if it runs.
    pub(crate) fn start_sandbox(&mut self, pod: &str, now: SimTime) {
        self.kernel.advance_to(now);
        self.kernel.start_sandbox(pod);
    }

    /// Stops the sandbox of a pod. The pod's cgroup exists until [`Machine::remove_volumes`].
    pub(crate) fn stop_sandbox(&mut self, pod: &str, now: SimTime) {
        self.kernel.advance_to(now);
        self.kernel.stop_sandbox(pod);
    }

    /// Starts a container with an empty writable layer, and its pod's sandbox if that does not run.
    pub(crate) fn start(&mut self, id: ContainerId, spec: ContainerSpec, now: SimTime, rng: &mut Rng) {
        self.kernel.start_container(id, spec, now, rng);
        self.kernel.drop_stale_wakeups();
    }

    /// Sends a signal to the first process of a container, if it runs.
    pub(crate) fn signal(&mut self, id: &str, signal: SignalNumber, now: SimTime) {
        self.kernel.advance_to(now);
        let Some(container) = self.container(id) else { return };
        let first = container.pids.iter().copied().find(|pid| self.kernel.processes[pid].ns_pid == 1);
        if let Some(first) = first {
            self.kernel.signal(first, signal);
        }
        self.kernel.drop_stale_wakeups();
    }

    /// Starts a command in a running container. [`Machine::take_exec`] returns its result.
    ///
    /// # Errors
    /// The container does not run, or cannot run the command.
    pub(crate) fn exec(&mut self, id: &str, command: &[String], now: SimTime) -> Result<ExecId, ExecError> {
        self.kernel.advance_to(now);
        let key = self.kernel.container_keys.get(id).copied().ok_or(ExecError::NotRunning)?;
        let started = self.kernel.start_exec(key, command);
        self.kernel.drop_stale_wakeups();
        started
    }

    /// Removes and returns the result of a command in a container; `None` while the command runs.
    pub fn take_exec(&mut self, id: ExecId) -> Option<ExecResult> {
        self.kernel.take_exec(id)
    }

    /// Returns when the machine has to run next: a process continues, or an event is pending.
    pub(crate) fn next(&self) -> Option<SimTime> {
        let is_idle = self.kernel.events.is_empty() && !self.kernel.cgroups.has_crossed();
        if is_idle { self.kernel.next_wakeup() } else { Some(self.kernel.now) }
    }

    /// Runs processes until `now`; returns the events in order.
    pub(crate) fn run(&mut self, now: SimTime) -> Vec<MachineEvent> {
        self.kernel.report_crossed_thresholds();
        while let Some(pid) = self.kernel.pop_wakeup(now) {
            self.kernel.step_process(pid);
            self.kernel.report_crossed_thresholds();
        }
        self.kernel.advance_to(now);
        self.kernel.drop_stale_wakeups();
        std::mem::take(&mut self.kernel.events)
    }

    /// Returns the memory of a cgroup; `None` if it does not exist.
    pub fn memory(&self, group: &Cgroup) -> Option<MemoryUse> {
        Some(self.kernel.cgroups.usage(self.cgroup_id(group)?))
    }

    /// Reports [`MachineEvent::ThresholdCrossed`] whenever the usage of a cgroup rises above
    /// `usage` bytes, or falls to them. Replaces the threshold of the same `key`. Does nothing if
    /// the cgroup does not exist.
    pub(crate) fn set_memory_threshold(&mut self, key: &str, group: Cgroup, usage: u64) {
        if let Some(id) = self.cgroup_id(&group) {
            self.kernel.cgroups.set_threshold(key, id, group, usage);
        }
    }

    /// Sets `memory.max` of a cgroup, if it exists. The limit of the root is invisible in
    /// [`Machine::memory_total`], like that of a kind node's container (`docker update --memory`).
    pub fn limit_memory(&mut self, group: &Cgroup, bytes: Option<u64>) {
        if let Some(id) = self.cgroup_id(group) {
            self.kernel.cgroups.set_limit(id, bytes);
        }
    }

    /// Sets `pids.max` of the cgroup of all pods.
    pub(crate) fn limit_tasks_of_pods(&mut self, limit: Option<u64>) {
        self.kernel.pods_task_limit = limit;
    }

    /// Moves images to a dedicated file system, or back to nodefs. Writable layers move too if
    /// [`Imagefs::has_layers`] is true. `images` is the space of the images.
    pub(crate) fn set_imagefs(&mut self, imagefs: Option<Imagefs>, images: DiskUse) {
        self.imagefs = imagefs;
        match imagefs.filter(|imagefs| imagefs.has_layers) {
            Some(imagefs) => {
                let mount_points = self.kernel.containers.values().map(|container| container.mount_points);
                self.kernel.disk.separate_layers(imagefs.capacity(), images, mount_points.sum());
            }
            None => self.kernel.disk.join_layers(),
        }
    }

    /// Returns the file system that images have for themselves, or with writable layers.
    pub fn imagefs(&self) -> Option<Imagefs> {
        self.imagefs
    }

    /// Returns the layout of the file systems.
    pub(crate) fn fs_layout(&self) -> FsLayout {
        match self.imagefs {
            None => FsLayout::Single,
            Some(Imagefs { has_layers: true, .. }) => FsLayout::DedicatedImagefs,
            Some(_) => FsLayout::SplitImagefs,
        }
    }

    /// Returns the usage of nodefs. It includes images, also those that have a file system of their
    /// own.
    pub(crate) fn filesystem(&self) -> Filesystem {
        self.kernel.disk.filesystem()
    }

    /// Returns the usage of the file system of images by writable layers; `None` if images are on
    /// nodefs.
    pub(crate) fn images_filesystem(&self) -> Option<Filesystem> {
        let capacity = self.imagefs?.capacity();
        let empty = Filesystem { capacity, used: DiskUse::default() };
        Some(self.kernel.disk.layers_filesystem().unwrap_or(empty))
    }

    /// Returns the usage of a container's writable layer, with the mount points in it.
    pub(crate) fn layer(&self, id: &str) -> DiskUse {
        let Some(container) = self.container(id) else { return DiskUse::default() };
        self.kernel.disk.used(container.layer) + container.mount_points
    }

    /// Returns the usage of a container's log, with rotated files.
    pub(crate) fn log_use(&self, id: &str) -> DiskUse {
        self.kernel.container_keys.get(id).map(|key| self.kernel.log_usage(*key)).unwrap_or_default()
    }

    /// Returns the usage of a container's log, without rotated files.
    pub(crate) fn current_log_use(&self, id: &str) -> DiskUse {
        let size = self.container(id).map_or(0, |container| container.log.size);
        DiskUse { bytes: size.next_multiple_of(BLOCK), inodes: 1 }
    }

    /// Rotates the log of a container whose current file has at least `max_size` bytes, so that at
    /// most `max_files` exist.
    pub(crate) fn rotate_log(&mut self, id: &str, max_size: u64, max_files: usize) {
        let Some(key) = self.kernel.container_keys.get(id).copied() else { return };
        let Some(container) = self.kernel.containers.get_mut(&key) else { return };
        if container.log.size >= max_size {
            container.log.rotate(max_files);
            self.kernel.resize_log(key);
        }
    }

    /// Returns the last lines of a container's log.
    pub(crate) fn log(&self, id: &str) -> &[LogLine] {
        self.container(id).map(|container| container.log.lines()).unwrap_or_default()
    }

    /// Returns the usage of a pod's volume, with its root directory; of a tmpfs, the memory of its
    /// files.
    pub(crate) fn volume(&self, pod: &str, volume: &str) -> DiskUse {
        let tree = self.kernel.pods.get(pod).and_then(|pod| pod.volumes.get(volume)).copied();
        let Some(tree) = tree else { return DiskUse::default() };
        let root = if self.kernel.disk.is_tmpfs(tree) { 0 } else { BLOCK };
        self.kernel.disk.used(tree) + DiskUse { bytes: root, inodes: 1 }
    }

    /// Returns the size of a pod's tmpfs volume in bytes; `None` if it is not mounted.
    pub(crate) fn tmpfs_size(&self, pod: &str, volume: &str) -> Option<u64> {
        let tree = *self.kernel.pods.get(pod)?.volumes.get(volume)?;
        self.kernel.disk.tmpfs_size(tree)
    }

    /// Writes a file of the node, or removes it if `text` is `None`. `path` is absolute.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn put_file(&mut self, path: &str, text: Option<&[u8]>) -> Result<(), NoSpace> {
        self.kernel.put_node_file(path, text)
    }

    /// Returns the end of what a container has written to its termination log, at most 4096 bytes;
    /// `None` if it has written nothing (`getTerminationMessage`, pkg/kubelet/kuberuntime).
    pub(crate) fn termination_message(&self, id: &str) -> Option<String> {
        let layer = self.container(id)?.layer;
        let file = self.kernel.disk.file(self.kernel.disk.lookup(layer, TERMINATION_LOG)?)?;
        let text = file.text.as_deref().filter(|text| !text.is_empty())?;
        Some(
            String::from_utf8_lossy(&text[text.len().saturating_sub(MAX_TERMINATION_MESSAGE)..]).into_owned(),
        )
    }

    /// Returns the number of changes to the node's files.
    pub(crate) fn file_changes(&self) -> u64 {
        self.kernel.disk.changes(self.kernel.node_files)
    }

    /// Returns the files in a directory of the node with their content, by name. Leaves out files
    /// whose content is not stored, which are large.
    pub(crate) fn files(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        self.kernel.node_files_in(directory)
    }

    /// Returns the number of tasks on the node, or the number of processes in a pod or container.
    pub(crate) fn processes(&self, group: &Cgroup) -> u64 {
        match group {
            Cgroup::Root => self.kernel.tasks.max(self.system_tasks),
            group => self.containers(group).map(|container| container.pids.len() as u64).sum(),
        }
    }

    /// Returns `kernel.pid_max`.
    pub(crate) fn max_pid(&self) -> u64 {
        self.kernel.max_pid
    }

    /// Returns `kernel.threads-max`, which is not less than `kernel.pid_max`.
    pub(crate) fn threads_max(&self) -> u64 {
        self.kernel.threads_max()
    }

    /// Returns the CPU time that a cgroup has used since it was created.
    pub(crate) fn cpu(&self, group: &Cgroup) -> Duration {
        let running: Duration = self.containers(group).map(|container| container.cpu).sum();
        match group {
            Cgroup::Root | Cgroup::Pods => {
                let removed: Duration = self.kernel.pods.values().map(|pod| pod.removed_cpu).sum();
                // The system's own processes take about a twentieth of a CPU.
                let system =
                    if *group == Cgroup::Root { self.kernel.now.since_start() / 20 } else { Duration::ZERO };
                running + removed + self.kernel.removed_cpu + system
            }
            Cgroup::Pod(uid) => {
                running + self.kernel.pods.get(uid).map(|pod| pod.removed_cpu).unwrap_or_default()
            }
            Cgroup::Container(_) => running,
        }
    }

    /// Removes a container with its layer and its log. Kills it first, without an event.
    pub(crate) fn remove(&mut self, id: &str) {
        let events = self.kernel.events.len();
        self.signal(id, SIGKILL, self.kernel.now);
        self.kernel.events.truncate(events);
        self.kernel.remove_container(id);
    }

    /// Removes the volumes, the sandbox and the cgroup of a pod. Kills its containers first.
    pub(crate) fn remove_volumes(&mut self, pod: &str) {
        let containers = self.kernel.containers.values();
        let running = containers.filter(|container| container.spec.pod == pod && container.cgroup.is_some());
        let running: Vec<String> = running.map(|container| container.id.clone()).collect();
        for id in running {
            self.signal(&id, SIGKILL, self.kernel.now);
        }
        self.kernel.remove_pod(pod);
    }

    /// Makes the OOM killer kill the process that it would choose if the node had no memory left.
    pub(crate) fn trigger_oom(&mut self, now: SimTime) {
        self.kernel.advance_to(now);
        self.kernel.oom_kill(ROOT_CGROUP);
        self.kernel.drop_stale_wakeups();
    }

    fn container(&self, id: &str) -> Option<&Container> {
        self.kernel.containers.get(self.kernel.container_keys.get(id)?)
    }

    fn containers<'a>(&'a self, group: &'a Cgroup) -> impl Iterator<Item = &'a Container> {
        self.kernel.containers.values().filter(move |container| match group {
            Cgroup::Root | Cgroup::Pods => true,
            Cgroup::Pod(uid) => container.spec.pod == *uid,
            Cgroup::Container(id) => container.id == *id,
        })
    }

    fn cgroup_id(&self, group: &Cgroup) -> Option<CgroupId> {
        match group {
            Cgroup::Root => Some(ROOT_CGROUP),
            Cgroup::Pods => Some(PODS_CGROUP),
            Cgroup::Pod(uid) => self.kernel.pods.get(uid).map(|pod| pod.cgroup),
            Cgroup::Container(id) => self.container(id)?.cgroup,
        }
    }
}

/// Returns the memory of the node's system processes, five sixths of it anonymous as recorded, and
/// reclaimable page cache.
fn system_pages(options: &NodeOptions) -> Pages {
    let anon = options.memory_used / 6 * 5;
    let inactive = options.memory_used.min((options.memory - options.memory_used) / 4);
    Pages { anon, kernel: options.memory_used - anon, inactive, ..Pages::default() }
}
