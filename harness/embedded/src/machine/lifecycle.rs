//! The life of processes: start, `exec`, signals and exit.

use super::calibration;
use super::cgroups::Pages;
use super::container::Container;
use super::errno::Errno;
use super::ids::{ContainerKey, Pid};
use super::kernel::{Kernel, Process, Program};
use super::open_file::Descriptors;
use super::program::load;
use super::step::{CommandLine, Footprint, SIGKILL, SignalAction, SignalNumber, StepOutcome};
use super::types::MachineEvent;
use crate::sim::SimTime;

/// The exit status of a process that SIGKILL ended.
pub(super) const KILLED: i32 = 128 + SIGKILL as i32;
/// The smallest PID that the kernel reuses (`RESERVED_PIDS`).
const RESERVED_PIDS: Pid = Pid(300);

impl Kernel {
    /// Starts a child of `parent` in the same container. Returns its PID on the node and in the
    /// container.
    pub(super) fn spawn(
        &mut self,
        parent: Pid,
        program: Box<dyn Program>,
        descriptors: Descriptors,
        at: SimTime,
    ) -> Result<(Pid, u64), Errno> {
        let key = self.processes.get(&parent).ok_or(Errno::Killed)?.container;
        let child = self.start_process(key, Some(parent), program, descriptors, at)?;
        // The child's memory is charged, which may have made the OOM killer kill the parent.
        if self.processes.contains_key(&parent) { Ok(child) } else { Err(Errno::Killed) }
    }

    /// Starts a command as a child of `parent`, as [`Kernel::spawn`] does.
    pub(super) fn spawn_command(
        &mut self,
        parent: Pid,
        line: &CommandLine,
        descriptors: Descriptors,
        at: SimTime,
    ) -> Result<(Pid, u64), Errno> {
        self.spawn(parent, load(&line.words, &line.environment), descriptors, at)
    }

    /// Returns whether the container of `pid` can have another process.
    pub(super) fn can_fork(&self, pid: Pid) -> bool {
        self.container_of(pid).is_some_and(|container| self.has_free_pid(container))
    }

    fn has_free_pid(&self, container: &Container) -> bool {
        let pod = &container.spec.pod;
        // The pod's pause process counts too.
        let is_below = |limit: u64| {
            let containers = self.containers.values().filter(|other| other.spec.pod == *pod);
            containers.map(|other| other.tasks).sum::<u64>() + 1 < limit
        };
        // Each pod has a pause process.
        let of_pods =
            || self.containers.values().map(|other| other.tasks).sum::<u64>() + self.pods.len() as u64;
        self.tasks < self.max_pid
            && self.pods_task_limit.is_none_or(|limit| of_pods() < limit)
            && container.tasks < self.scope_task_limit()
            && self.pods.get(pod).and_then(|pod| pod.pids_limit).is_none_or(is_below)
    }

    /// Starts a process in a container; its first step is at `at`.
    pub(super) fn start_process(
        &mut self,
        key: ContainerKey,
        parent: Option<Pid>,
        program: Box<dyn Program>,
        descriptors: Descriptors,
        at: SimTime,
    ) -> Result<(Pid, u64), Errno> {
        if !self.containers.get(&key).is_some_and(|container| self.has_free_pid(container)) {
            return Err(Errno::CannotFork);
        }
        let pid = self.allocate_pid()?;
        let Footprint { anon, kernel, tasks } = program.footprint();
        let container = self.containers.get_mut(&key).ok_or(Errno::Killed)?;
        container.last_ns_pid += 1;
        let ns_pid = container.last_ns_pid;
        container.pids.insert(pid);
        container.tasks += tasks;
        self.tasks += tasks;
        descriptors.iter().flatten().for_each(|file| self.retain(*file));
        let process = Process {
            ns_pid,
            parent,
            container: key,
            name: program.name(),
            program: Some(program),
            descriptors,
            anon: 0,
            kernel: 0,
            tasks,
            wakeup: None,
            signals: Vec::new(),
            exited_children: Vec::new(),
        };
        self.processes.insert(pid, process);
        self.schedule(pid, at);
        // The new process itself may be killed: it exits like any other then.
        let _ = self.allocate_memory(pid, anon, kernel);
        Ok((pid, ns_pid))
    }

    /// Replaces the program of a process (`exec`).
    fn exec(&mut self, pid: Pid, program: Box<dyn Program>) -> Result<(), Errno> {
        let process = self.processes.get_mut(&pid).ok_or(Errno::Killed)?;
        let Footprint { anon, kernel, tasks } = program.footprint();
        let before = std::mem::replace(&mut process.tasks, tasks);
        let pages = Pages { anon: process.anon, kernel: process.kernel, ..Pages::default() };
        (process.anon, process.kernel) = (0, 0);
        process.name = program.name();
        process.program = Some(program);
        process.signals.clear();
        if let Some(container) = self.containers.get_mut(&process.container) {
            container.tasks = container.tasks + tasks - before;
            self.tasks = self.tasks + tasks - before;
            if let Some(group) = container.cgroup {
                self.cgroups.uncharge(group, pages);
            }
        }
        self.allocate_memory(pid, anon, kernel)
    }

    /// Ends a process. The container ends with its first process.
    pub(super) fn exit(&mut self, pid: Pid, code: i32) {
        let Some(process) = self.processes.remove(&pid) else { return };
        process.descriptors.into_iter().flatten().for_each(|file| self.close(file));
        self.end_exec(pid, code);
        self.tasks -= process.tasks;
        let Some(container) = self.containers.get_mut(&process.container) else { return };
        container.pids.remove(&pid);
        container.tasks -= process.tasks;
        if let Some(group) = container.cgroup {
            let pages = Pages { anon: process.anon, kernel: process.kernel, ..Pages::default() };
            self.cgroups.uncharge(group, pages);
        }
        if process.ns_pid == 1 {
            let others: Vec<Pid> = container.pids.iter().copied().collect();
            others.into_iter().for_each(|pid| self.kill(pid));
            self.end_container(process.container, code);
            return;
        }
        if let Some(parent) = process.parent
            && let Some(waiting) = self.processes.get_mut(&parent)
        {
            waiting.exited_children.push((process.ns_pid, code));
            self.wake(parent);
        }
    }

    /// Ends a process as SIGKILL does.
    pub(super) fn kill(&mut self, pid: Pid) {
        self.exit(pid, KILLED);
    }

    /// Returns whether a process is the init of its PID namespace, which gets only signals that it
    /// handles.
    fn is_init(&self, process: &Process) -> bool {
        let shares_pids =
            self.containers.get(&process.container).is_some_and(|container| container.spec.shares_pids);
        process.ns_pid == 1 && !shares_pids
    }

    /// Sends a signal to a process.
    pub(super) fn signal(&mut self, pid: Pid, signal: SignalNumber) {
        if signal == SIGKILL {
            return self.kill(pid);
        }
        let Some(process) = self.processes.get(&pid) else { return };
        let is_init = self.is_init(process);
        let action = match &process.program {
            Some(program) => program.signal_action(signal, is_init),
            None => SignalAction::Deliver,
        };
        match action {
            SignalAction::Ignore => {}
            SignalAction::Exit(code) => self.exit(pid, code),
            SignalAction::Deliver => {
                if let Some(process) = self.processes.get_mut(&pid)
                    && !process.signals.contains(&signal)
                {
                    process.signals.push(signal);
                }
                self.wake(pid);
            }
        }
    }

    /// Takes the signals that were delivered to a process.
    pub(super) fn take_signals(&mut self, pid: Pid) -> Vec<SignalNumber> {
        self.processes.get_mut(&pid).map(|process| std::mem::take(&mut process.signals)).unwrap_or_default()
    }

    /// Returns whether the container of `pid` has a process with this PID in the container.
    pub(super) fn has_ns_pid(&self, pid: Pid, ns_pid: u64) -> bool {
        let container = self.container_of(pid);
        container
            .is_some_and(|container| container.pids.iter().any(|pid| self.processes[pid].ns_pid == ns_pid))
    }

    /// Ends a container without processes: removes its cgroup and keeps its files.
    pub(super) fn end_container(&mut self, key: ContainerKey, code: i32) {
        let Some(container) = self.containers.get_mut(&key) else { return };
        if let Some(group) = container.cgroup.take() {
            let kernel = std::mem::take(&mut container.kernel);
            self.cgroups.uncharge(group, Pages::kernel(kernel));
            self.cgroups.drop_file(container.image_file);
            self.cgroups.remove(group);
        }
        container.log.flush(self.now);
        self.events.push(MachineEvent::ContainerExited {
            container: container.id.clone(),
            code,
            oom: container.oom_killed,
            at: self.now,
        });
        self.resize_log(key);
    }

    /// Returns the next free PID. Numbers after the largest one begin at [`RESERVED_PIDS`], so that
    /// all may be taken before the limit of tasks is reached (`alloc_pid`, kernel/pid.c).
    fn allocate_pid(&mut self) -> Result<Pid, Errno> {
        for _ in 0..self.max_pid {
            self.last_pid.0 += 1;
            if self.last_pid.0 > self.max_pid {
                self.last_pid = RESERVED_PIDS;
            }
            if !self.processes.contains_key(&self.last_pid) {
                return Ok(self.last_pid);
            }
        }
        Err(Errno::CannotFork)
    }

    /// Runs a process until it waits, and schedules its next step.
    pub(super) fn step_process(&mut self, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.wakeup = None;
        let Some(mut program) = process.program.take() else { return };
        if !program.waits_for_children() {
            process.exited_children.clear();
        }
        let outcome = program.step(pid, self);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        match outcome {
            StepOutcome::RunAt(at) => {
                process.program = Some(program);
                self.schedule(pid, at.max(self.now + calibration::SYSCALL));
            }
            // An event during the step has scheduled the next one.
            StepOutcome::Wait => process.program = Some(program),
            StepOutcome::Exit(code) => self.exit(pid, code),
            StepOutcome::Exec(line) => {
                if self.exec(pid, load(&line.words, &line.environment)).is_ok() {
                    self.schedule(pid, self.now + calibration::EXEC);
                }
            }
        }
    }
}
