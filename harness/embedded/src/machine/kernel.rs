//! The kernel's state: processes, memory, CPU time and wakeups. Programs implement [`Program`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::calibration;
use super::cgroups::{CgroupTree, Pages};
use super::container::{Container, Pod};
use super::disk::{Disk, Place};
use super::errno::Errno;
use super::exec_result::Exec;
use super::ids::{CgroupId, ContainerKey, ExecId, FileId, OpenFileId, Pid, PipeId, TreeId};
use super::open_file::{Descriptors, OpenFile, Pipe};
use super::step::{Footprint, SignalAction, SignalNumber, StepOutcome};
use super::types::MachineEvent;
use crate::options::{CgroupVersion, NodeOptions};
use crate::sim::{Epoch, SimTime};

/// A process.
pub(super) struct Process {
    /// The PID in the container.
    pub ns_pid: u64,
    pub parent: Option<Pid>,
    pub container: ContainerKey,
    /// `comm`
    pub name: String,
    /// `None` while the program runs a step.
    pub program: Option<Box<dyn Program>>,
    pub descriptors: Descriptors,
    /// Anonymous memory, in bytes.
    pub anon: u64,
    /// Kernel memory, in bytes.
    pub kernel: u64,
    pub tasks: u64,
    /// When the process runs next; `None` while it waits for an event.
    pub wakeup: Option<SimTime>,
    /// Signals for the program.
    pub signals: Vec<SignalNumber>,
    /// Exited children that were not waited for: PID in the container, and exit status.
    pub exited_children: Vec<(u64, i32)>,
}

/// A program and its state.
pub(super) trait Program: Send {
    /// Returns the name of the process (`comm`).
    fn name(&self) -> String;

    /// Returns the memory and the tasks of the program when it starts.
    fn footprint(&self) -> Footprint {
        Footprint::APPLET
    }

    /// Returns what the program does about a signal other than SIGKILL.
    fn signal_action(&self, signal: SignalNumber, is_init: bool) -> SignalAction {
        SignalAction::default_for(signal, is_init)
    }

    /// Returns whether the program waits for its children.
    fn waits_for_children(&self) -> bool {
        false
    }

    /// Runs the program until it waits.
    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome;
}

/// The state of a machine.
pub(super) struct Kernel {
    pub now: SimTime,
    /// The date at which simulated time begins.
    pub epoch: Epoch,
    pub cgroup: CgroupVersion,
    pub cgroups: CgroupTree,
    pub disk: Disk,
    /// The node's own files.
    pub node_files: TreeId,
    pub containers: BTreeMap<ContainerKey, Container>,
    pub container_keys: BTreeMap<String, ContainerKey>,
    pub pods: BTreeMap<String, Pod>,
    pub processes: BTreeMap<Pid, Process>,
    pub open_files: Vec<Option<OpenFile>>,
    pub free_files: Vec<OpenFileId>,
    pub pipes: BTreeMap<PipeId, Pipe>,
    pub next_pipe: u64,
    /// Number of tasks (processes and threads) on the machine.
    pub tasks: u64,
    pub max_pid: u64,
    /// `pids.max` of the cgroup of all pods.
    pub pods_task_limit: Option<u64>,
    pub last_pid: Pid,
    pub next_container: ContainerKey,
    /// Commands in containers whose results were not taken.
    pub execs: BTreeMap<ExecId, Exec>,
    pub next_exec: u64,
    /// CPU time of removed pods.
    pub removed_cpu: Duration,
    pub events: Vec<MachineEvent>,
    cpus: u32,
    /// When the CPUs have done all work that was requested.
    cpus_free_at: SimTime,
    /// Wakeups in order of time, then of request.
    wakeups: BinaryHeap<Reverse<(SimTime, u64, Pid)>>,
    wakeup_count: u64,
}

impl Kernel {
    pub(super) fn new(options: &NodeOptions, cgroups: CgroupTree, mut disk: Disk) -> Self {
        let node_files = disk.create_tree(Place::Node);
        let mut kernel = Self {
            now: SimTime::ZERO,
            epoch: Epoch(jiff::Timestamp::UNIX_EPOCH),
            cgroup: options.cgroup,
            cgroups,
            disk,
            node_files,
            containers: BTreeMap::new(),
            container_keys: BTreeMap::new(),
            pods: BTreeMap::new(),
            processes: BTreeMap::new(),
            open_files: Vec::new(),
            free_files: Vec::new(),
            pipes: BTreeMap::new(),
            next_pipe: 0,
            tasks: options.processes,
            max_pid: options.max_pid,
            pods_task_limit: None,
            last_pid: Pid(options.processes),
            next_container: ContainerKey(0),
            execs: BTreeMap::new(),
            next_exec: 0,
            removed_cpu: Duration::ZERO,
            events: Vec::new(),
            cpus: options.cpus,
            cpus_free_at: SimTime::ZERO,
            wakeups: BinaryHeap::new(),
            wakeup_count: 0,
        };
        kernel.create_node_directories();
        kernel
    }

    /// Advances the clock; it never goes back.
    pub(super) fn advance_to(&mut self, now: SimTime) {
        self.now = self.now.max(now);
    }

    /// Schedules the next step of a process; replaces the one that was scheduled before.
    pub(super) fn schedule(&mut self, pid: Pid, at: SimTime) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.wakeup = Some(at);
            self.wakeup_count += 1;
            self.wakeups.push(Reverse((at, self.wakeup_count, pid)));
        }
    }

    /// Wakes a process that waits for an event. During its step, schedules the next one.
    pub(super) fn wake(&mut self, pid: Pid) {
        if self.processes.get(&pid).is_some_and(|process| process.wakeup.is_none()) {
            self.schedule(pid, self.now + calibration::SYSCALL);
        }
    }

    /// Drops wakeups at the head of the queue that were replaced, or whose process exited.
    pub(super) fn drop_stale_wakeups(&mut self) {
        while let Some(Reverse((at, _, pid))) = self.wakeups.peek() {
            if self.processes.get(pid).is_some_and(|process| process.wakeup == Some(*at)) {
                break;
            }
            self.wakeups.pop();
        }
    }

    /// Returns the time of the next wakeup. Call [`Kernel::drop_stale_wakeups`] before.
    pub(super) fn next_wakeup(&self) -> Option<SimTime> {
        self.wakeups.peek().map(|Reverse((at, ..))| *at)
    }

    /// Advances the clock to the next wakeup that is not after `until`; returns its process.
    pub(super) fn pop_wakeup(&mut self, until: SimTime) -> Option<Pid> {
        self.drop_stale_wakeups();
        if self.next_wakeup()? > until {
            return None;
        }
        let Reverse((at, _, pid)) = self.wakeups.pop()?;
        self.advance_to(at);
        Some(pid)
    }

    /// Returns the container of a process.
    pub(super) fn container_of(&self, pid: Pid) -> Option<&Container> {
        self.containers.get(&self.processes.get(&pid)?.container)
    }

    fn cgroup_of(&self, pid: Pid) -> Option<CgroupId> {
        self.container_of(pid)?.cgroup
    }

    /// Returns when work that begins at `start` and takes `cpu_time` is done. The CPUs do work in
    /// the order of requests.
    pub(super) fn run_on_cpu(&mut self, pid: Pid, start: SimTime, cpu_time: Duration) -> SimTime {
        self.account_cpu(pid, cpu_time);
        self.cpus_free_at = self.cpus_free_at.max(start) + cpu_time / self.cpus;
        self.cpus_free_at.max(start + cpu_time)
    }

    /// Adds CPU time to the container of a process.
    pub(super) fn account_cpu(&mut self, pid: Pid, cpu_time: Duration) {
        let key = self.processes.get(&pid).map(|process| process.container);
        if let Some(container) = key.and_then(|key| self.containers.get_mut(&key)) {
            container.cpu += cpu_time;
        }
    }

    /// Allocates anonymous memory and the kernel memory for it, in bytes.
    pub(super) fn allocate_memory(&mut self, pid: Pid, anon: u64, kernel: u64) -> Result<(), Errno> {
        let group = self.reclaim_for(pid, anon + kernel)?;
        self.cgroups.charge(group, Pages { anon, kernel, ..Pages::default() });
        self.report_crossed_thresholds();
        if let Some(process) = self.processes.get_mut(&pid) {
            process.anon += anon;
            process.kernel += kernel;
        }
        Ok(())
    }

    /// Frees anonymous memory.
    pub(super) fn free_memory(&mut self, pid: Pid, anon: u64) {
        let Some(group) = self.cgroup_of(pid) else { return };
        if let Some(process) = self.processes.get_mut(&pid) {
            let anon = anon.min(process.anon);
            process.anon -= anon;
            self.cgroups.uncharge(group, Pages::anon(anon));
        }
    }

    /// Adds pages of a file to memory. The cgroup that used the file first is charged, even though
    /// memory is reclaimed in the cgroup of `pid`.
    pub(super) fn cache_file(&mut self, pid: Pid, file: FileId, pages: Pages) -> Result<(), Errno> {
        let group = self.reclaim_for(pid, pages.total())?;
        self.cgroups.cache_file(group, file, pages);
        self.report_crossed_thresholds();
        Ok(())
    }

    /// Makes room for an allocation by dropping page cache, then by OOM kills. An allocation for
    /// which no process can be killed succeeds. Returns the cgroup of `pid`.
    fn reclaim_for(&mut self, pid: Pid, bytes: u64) -> Result<CgroupId, Errno> {
        loop {
            let group = self.cgroup_of(pid).ok_or(Errno::Killed)?;
            let Some((full, missing)) = self.cgroups.find_full(group, bytes) else { return Ok(group) };
            if self.cgroups.reclaim(full, missing) >= missing {
                continue;
            }
            let killed = self.oom_kill(full);
            if !self.processes.contains_key(&pid) {
                return Err(Errno::Killed);
            }
            if !killed {
                return Ok(group);
            }
        }
    }

    /// Reports the thresholds that were crossed since the last call.
    pub(super) fn report_crossed_thresholds(&mut self) {
        for (group, threshold) in self.cgroups.take_crossed() {
            self.events.push(MachineEvent::ThresholdCrossed { group, threshold, at: self.now });
        }
    }

    /// Drops the pages of a file that was removed.
    pub(super) fn drop_pages(&mut self, removed: Option<FileId>) {
        if let Some(file) = removed {
            self.cgroups.drop_file(file);
        }
    }
}
