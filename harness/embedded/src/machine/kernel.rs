//! What processes act on: everything of the machine but themselves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::container::{Container, ContainerKey, Pod};
use super::disk::{Disk, FileId, StoreId};
use super::groups::{GroupId, Groups, Pages};
use super::io::{Open, OpenId};
use super::pipe::{Pipe, PipeId};
use super::process::{Pid, Process};
use super::{CgroupVersion, Happened};
use crate::options::NodeOptions;
use crate::time::{Epoch, Time};

/// Why a process did not get what it wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errno {
    /// It was killed while it asked: nobody is there to be told.
    Killed,
    /// ENOSPC
    NoSpace,
    /// EPIPE
    BrokenPipe,
    /// ENOENT
    Missing,
    /// EISDIR
    IsDirectory,
    /// ENOTDIR
    NotDirectory,
    /// EEXIST
    Exists,
    /// ENOTEMPTY
    NotEmpty,
    /// EAGAIN of `fork`
    CannotFork,
    /// EBADF
    BadDescriptor,
    /// EROFS
    ReadOnly,
}

impl Errno {
    /// Its number on Linux.
    pub fn number(self) -> i32 {
        match self {
            Self::Killed => 4,
            Self::NoSpace => 28,
            Self::BrokenPipe => 32,
            Self::Missing => 2,
            Self::IsDirectory => 21,
            Self::NotDirectory => 20,
            Self::Exists => 17,
            Self::NotEmpty => 39,
            Self::CannotFork => 11,
            Self::BadDescriptor => 9,
            Self::ReadOnly => 30,
        }
    }

    /// As `strerror` has it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Killed => "Killed",
            Self::NoSpace => "No space left on device",
            Self::BrokenPipe => "Broken pipe",
            Self::Missing => "No such file or directory",
            Self::IsDirectory => "Is a directory",
            Self::NotDirectory => "Not a directory",
            Self::Exists => "File exists",
            Self::NotEmpty => "Directory not empty",
            Self::CannotFork => "Resource temporarily unavailable",
            Self::BadDescriptor => "Bad file descriptor",
            Self::ReadOnly => "Read-only file system",
        }
    }
}

/// The state of a machine.
pub(super) struct Kernel {
    pub now: Time,
    /// What the calendar says at the beginning of time.
    pub epoch: Epoch,
    pub cgroup: CgroupVersion,
    pub groups: Groups,
    pub disk: Disk,
    /// The node's own files.
    pub host: StoreId,
    pub containers: BTreeMap<ContainerKey, Container>,
    pub names: BTreeMap<String, ContainerKey>,
    pub pods: BTreeMap<String, Pod>,
    pub processes: BTreeMap<Pid, Process>,
    pub open: Vec<Option<Open>>,
    pub free: Vec<OpenId>,
    pub pipes: Vec<Pipe>,
    pub free_pipes: Vec<PipeId>,
    /// Tasks of the whole machine: processes and threads.
    pub tasks: u64,
    pub max_pid: u64,
    pub next_pid: Pid,
    pub next_container: ContainerKey,
    /// CPU time of what has been removed, and of the machine's own.
    pub cpu: Duration,
    cpus: u32,
    /// When the CPUs have done what they were given.
    cpus_free: Time,
    wakes: BinaryHeap<Reverse<(Time, u64, Pid)>>,
    asked: u64,
    pub happened: Vec<Happened>,
}

impl Kernel {
    pub fn new(options: &NodeOptions, groups: Groups, mut disk: Disk) -> Self {
        let (tasks, cpus) = (options.processes, options.cpus);
        let host = disk.create_store(None);
        let mut kernel = Self {
            now: Time::ZERO,
            epoch: Epoch(jiff::Timestamp::UNIX_EPOCH),
            cgroup: options.cgroup,
            groups,
            disk,
            host,
            containers: BTreeMap::new(),
            names: BTreeMap::new(),
            pods: BTreeMap::new(),
            processes: BTreeMap::new(),
            open: Vec::new(),
            free: Vec::new(),
            pipes: Vec::new(),
            free_pipes: Vec::new(),
            tasks,
            max_pid: options.max_pid,
            next_pid: tasks,
            next_container: 0,
            cpu: Duration::ZERO,
            cpus,
            cpus_free: Time::ZERO,
            wakes: BinaryHeap::new(),
            asked: 0,
            happened: Vec::new(),
        };
        kernel.make_host();
        kernel
    }

    /// Has a process go on at a time, instead of when it would.
    pub fn wake(&mut self, pid: Pid, at: Time) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.wake = Some(at);
            self.asked += 1;
            self.wakes.push(Reverse((at, self.asked, pid)));
        }
    }

    /// Has a process go on that waits for something to happen.
    pub fn nudge(&mut self, pid: Pid) {
        if self.processes.get(&pid).is_some_and(|process| process.wake.is_none()) {
            self.wake(pid, self.now + super::cost::SYSCALL);
        }
    }

    /// When a process goes on next. Calls that nobody waits for any more are forgotten.
    pub fn forget_stale(&mut self) {
        while let Some(Reverse((at, _, pid))) = self.wakes.peek() {
            if self.processes.get(pid).is_some_and(|process| process.wake == Some(*at)) {
                break;
            }
            self.wakes.pop();
        }
    }

    /// When a process goes on next, after `forget_stale`.
    pub fn next(&self) -> Option<Time> {
        self.wakes.peek().map(|Reverse((at, ..))| *at)
    }

    /// The process that goes on next, no later than `until`.
    pub fn pop(&mut self, until: Time) -> Option<Pid> {
        self.forget_stale();
        if self.next()? > until {
            return None;
        }
        let Reverse((at, _, pid)) = self.wakes.pop()?;
        self.now = self.now.max(at);
        Some(pid)
    }

    pub fn container(&self, pid: Pid) -> Option<&Container> {
        self.containers.get(&self.processes.get(&pid)?.container)
    }

    pub fn container_mut(&mut self, pid: Pid) -> Option<&mut Container> {
        self.containers.get_mut(&self.processes.get(&pid)?.container)
    }

    fn group(&self, pid: Pid) -> Option<GroupId> {
        self.container(pid)?.group
    }

    /// When work of so much CPU time is done that begins then: the CPUs are shared, first come, first served.
    pub fn work(&mut self, me: Pid, begin: Time, time: Duration) -> Time {
        self.spend(me, time);
        self.cpus_free = self.cpus_free.max(begin) + time / self.cpus;
        self.cpus_free.max(begin + time)
    }

    /// Counts CPU time of a process.
    pub fn spend(&mut self, me: Pid, time: Duration) {
        if let Some(container) = self.container_mut(me) {
            container.cpu += time;
        }
    }

    /// Gives a process anonymous memory, and what the kernel needs for it.
    pub fn allocate(&mut self, me: Pid, anon: u64, kernel: u64) -> Result<(), Errno> {
        let group = self.make_room(me, anon + kernel)?;
        self.groups.charge(group, Pages { anon, kernel, ..Pages::default() });
        self.tell_passed();
        if let Some(process) = self.processes.get_mut(&me) {
            process.anon += anon;
            process.kernel += kernel;
        }
        Ok(())
    }

    /// Takes anonymous memory back.
    pub fn release(&mut self, me: Pid, anon: u64) {
        let Some(group) = self.group(me) else { return };
        if let Some(process) = self.processes.get_mut(&me) {
            let anon = anon.min(process.anon);
            process.anon -= anon;
            self.groups.uncharge(group, Pages::anon(anon));
        }
    }

    /// Charges pages of a file that `me` uses.
    pub fn cache(&mut self, me: Pid, file: FileId, pages: Pages) -> Result<(), Errno> {
        let group = self.make_room(me, pages.total())?;
        // Room was made where `me` is charged; pages may go to whoever used the file first, as the kernel has it.
        self.groups.cache(group, file, pages);
        self.tell_passed();
        Ok(())
    }

    /// Makes room for so many bytes: drops page cache, then kills. Where nobody can be killed, the kernel lets it pass.
    fn make_room(&mut self, me: Pid, bytes: u64) -> Result<GroupId, Errno> {
        loop {
            let group = self.group(me).ok_or(Errno::Killed)?;
            let Some((small, missing)) = self.groups.too_small(group, bytes) else { return Ok(group) };
            if self.groups.reclaim(small, missing) >= missing {
                continue;
            }
            let killed = self.out_of_memory(small);
            if !self.processes.contains_key(&me) {
                return Err(Errno::Killed);
            }
            if !killed {
                return Ok(group);
            }
        }
    }

    /// Tells of marks that were passed.
    pub fn tell_passed(&mut self) {
        if self.groups.has_passed() {
            for (group, mark) in self.groups.passed() {
                self.happened.push(Happened::Crossed { group, mark, at: self.now });
            }
        }
    }

    /// A file is gone: so are its pages.
    pub fn forget_file(&mut self, file: Option<FileId>) {
        if let Some(file) = file {
            self.groups.drop_file(file);
        }
    }
}
