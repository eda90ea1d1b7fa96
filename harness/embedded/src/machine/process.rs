//! Processes: begun, signalled, ended.

use super::container::{Container, ContainerKey};
use super::groups::Pages;
use super::io::OpenId;
use super::kernel::{Errno, Kernel};
use super::program::{Footprint, Program, Reaction};
use super::{Happened, cost};
use crate::time::Time;

/// A process's number on its node.
pub(super) type Pid = u64;
/// The exit status of what was killed.
pub(super) const KILLED: i32 = 128 + SIGKILL as i32;

/// A signal's number.
pub(super) type Sig = u8;
/// SIGKILL
pub(super) const SIGKILL: Sig = 9;
/// SIGPIPE
pub(super) const SIGPIPE: Sig = 13;
/// SIGTERM
pub(super) const SIGTERM: Sig = 15;

/// What descriptors a process has open, by number.
pub(super) type Descriptors = [Option<OpenId>; 10];

/// A process.
pub(super) struct Process {
    /// Its number within its container.
    pub inner: u64,
    pub parent: Option<Pid>,
    pub container: ContainerKey,
    /// What the kernel calls it (`comm`).
    pub name: String,
    /// What it does; it is away while it acts.
    pub program: Option<Program>,
    pub descriptors: Descriptors,
    pub directory: String,
    pub anon: u64,
    pub kernel: u64,
    pub threads: u64,
    /// When it goes on; none while it waits for something to happen.
    pub wake: Option<Time>,
    /// Signals that its program wants to know of.
    pub signals: Vec<Sig>,
    /// Children that have ended, by their inner number, with their status.
    pub ended: Vec<(u64, i32)>,
}

impl Kernel {
    /// Begins a process in the container of `parent`, with copies of its descriptors.
    pub fn spawn(
        &mut self,
        parent: Pid,
        program: Program,
        descriptors: Descriptors,
        at: Time,
    ) -> Result<(Pid, u64), Errno> {
        let of = self.processes.get(&parent).ok_or(Errno::Killed)?;
        let (key, directory) = (of.container, of.directory.clone());
        self.begin(key, Some(parent), program, descriptors, directory, at)
    }

    /// Whether there may be one process more in the container of `me`.
    pub fn can_fork(&self, me: Pid) -> bool {
        self.container(me).is_some_and(|container| self.has_numbers(container))
    }

    fn has_numbers(&self, container: &Container) -> bool {
        let pod = &container.spec.pod;
        // Its pause process counts too.
        let within = |limit: u64| {
            let all = self.containers.values().filter(|other| other.spec.pod == *pod);
            all.map(|other| other.tasks).sum::<u64>() + 1 < limit
        };
        self.tasks < self.max_pid
            && container.tasks < self.scope_limit()
            && self.pods.get(pod).and_then(|pod| pod.pids_limit).is_none_or(within)
    }

    /// Begins a process in a container.
    pub fn begin(
        &mut self,
        key: ContainerKey,
        parent: Option<Pid>,
        program: Program,
        descriptors: Descriptors,
        directory: String,
        at: Time,
    ) -> Result<(Pid, u64), Errno> {
        if !self.containers.get(&key).is_some_and(|container| self.has_numbers(container)) {
            return Err(Errno::CannotFork);
        }
        let container = self.containers.get_mut(&key).ok_or(Errno::Killed)?;
        container.next_inner += 1;
        let inner = container.next_inner;
        let pid = self.free_pid();
        let Footprint { anon, kernel, threads } = program.footprint();
        let container = self.containers.get_mut(&key).ok_or(Errno::Killed)?;
        container.members.insert(pid);
        container.tasks += threads;
        self.tasks += threads;
        for descriptor in descriptors.iter().flatten() {
            self.hold(*descriptor);
        }
        let process = Process {
            inner,
            parent,
            container: key,
            name: program.name(),
            program: Some(program),
            descriptors,
            directory,
            anon: 0,
            kernel: 0,
            threads,
            wake: None,
            signals: Vec::new(),
            ended: Vec::new(),
        };
        self.processes.insert(pid, process);
        self.wake(pid, at);
        // The child is charged; the kernel may kill anybody for it, the parent too.
        let _ = self.allocate(pid, anon, kernel);
        if parent.is_some_and(|parent| !self.processes.contains_key(&parent)) {
            return Err(Errno::Killed);
        }
        Ok((pid, inner))
    }

    /// Puts another program in a process's place (`exec`).
    pub fn replace(&mut self, pid: Pid, program: Program) -> Result<(), Errno> {
        let process = self.processes.get_mut(&pid).ok_or(Errno::Killed)?;
        let Footprint { anon, kernel, threads } = program.footprint();
        let before = std::mem::replace(&mut process.threads, threads);
        let pages = Pages { anon: process.anon, kernel: process.kernel, ..Pages::default() };
        (process.anon, process.kernel) = (0, 0);
        process.name = program.name();
        process.program = Some(program);
        process.signals.clear();
        let key = process.container;
        if let Some(container) = self.containers.get_mut(&key) {
            container.tasks = container.tasks + threads - before;
            self.tasks = self.tasks + threads - before;
            if let Some(group) = container.group {
                self.groups.uncharge(group, pages);
            }
        }
        self.allocate(pid, anon, kernel)
    }

    /// Ends a process. With a container's first one, the container ends.
    pub fn exit(&mut self, pid: Pid, code: i32) {
        let Some(process) = self.processes.remove(&pid) else { return };
        for descriptor in process.descriptors.into_iter().flatten() {
            self.close(descriptor);
        }
        self.tasks -= process.threads;
        let Some(container) = self.containers.get_mut(&process.container) else { return };
        container.members.remove(&pid);
        container.tasks -= process.threads;
        if let Some(group) = container.group {
            let pages = Pages { anon: process.anon, kernel: process.kernel, ..Pages::default() };
            self.groups.uncharge(group, pages);
        }
        if process.inner == 1 {
            let others: Vec<Pid> = container.members.iter().copied().collect();
            others.into_iter().for_each(|pid| self.exit(pid, KILLED));
            self.end_container(process.container, code);
            return;
        }
        if let Some(parent) = process.parent
            && let Some(of) = self.processes.get_mut(&parent)
        {
            of.ended.push((process.inner, code));
            self.nudge(parent);
        }
    }

    /// Whether a process is the first of those that are numbered with it: the kernel keeps signals from it.
    pub fn is_first(&self, pid: Pid) -> bool {
        let Some(process) = self.processes.get(&pid) else { return false };
        process.inner == 1 && !self.containers.get(&process.container).is_some_and(|of| of.spec.shares_pids)
    }

    /// Sends a signal to a process.
    pub fn signal(&mut self, pid: Pid, sig: Sig) {
        let first = self.is_first(pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if sig == 0 {
            return;
        }
        if sig == SIGKILL {
            self.exit(pid, KILLED);
            return;
        }
        let reaction = process.program.as_ref().map_or(Reaction::Know, |program| program.on(sig, first));
        match reaction {
            Reaction::Ignore => {}
            Reaction::Exit(code) => self.exit(pid, code),
            Reaction::Know => {
                if !process.signals.contains(&sig) {
                    process.signals.push(sig);
                }
                self.nudge(pid);
            }
        }
    }

    /// The process of an inner number in the container of `me`.
    pub fn inner(&self, me: Pid, inner: u64) -> Option<Pid> {
        let container = self.container(me)?;
        container.members.iter().copied().find(|pid| self.processes[pid].inner == inner)
    }

    /// The container has no process any more: its group goes, its files stay.
    pub fn end_container(&mut self, key: ContainerKey, code: i32) {
        let now = self.now;
        let Some(container) = self.containers.get_mut(&key) else { return };
        if let Some(group) = container.group.take() {
            let kernel = std::mem::take(&mut container.kernel);
            self.groups.uncharge(group, Pages::kernel(kernel));
            self.groups.drop_file(container.image);
            self.groups.remove(group);
        }
        let container = self.containers.get_mut(&key);
        let Some(container) = container else { return };
        container.log.end(now);
        // containerd tells the reason OOMKilled of a container once any of its processes was killed for want of memory.
        let oom = container.oom_killed;
        self.happened.push(Happened::Exited { container: container.id.clone(), code, oom, at: now });
        self.grow_log(key);
    }

    /// A number that no process has.
    fn free_pid(&mut self) -> Pid {
        loop {
            self.next_pid += 1;
            if self.next_pid > self.max_pid {
                // As the kernel does, above those of the system (RESERVED_PIDS).
                self.next_pid = 300;
            }
            if !self.processes.contains_key(&self.next_pid) {
                return self.next_pid;
            }
        }
    }

    /// Does what a process does until it waits, and asks for its next turn.
    pub fn turn(&mut self, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.wake = None;
        let Some(mut program) = process.program.take() else { return };
        let turn = program.step(pid, self);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        match turn {
            super::program::Turn::At(at) => {
                process.program = Some(program);
                let at = at.max(self.now + cost::SYSCALL);
                self.wake(pid, at);
            }
            super::program::Turn::Wait => {
                // What happened while it acted would not wake it.
                let missed = !process.signals.is_empty() || !process.ended.is_empty();
                process.program = Some(program);
                if missed {
                    self.nudge(pid);
                }
            }
            super::program::Turn::Exit(code) => self.exit(pid, code),
            super::program::Turn::Become(program) => {
                if self.replace(pid, *program).is_ok() {
                    self.wake(pid, self.now + cost::EXEC);
                }
            }
        }
    }
}
