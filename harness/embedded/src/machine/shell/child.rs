//! Forking.

use std::sync::Arc;

use super::super::cost;
use super::super::kernel::{Errno, Kernel};
use super::super::process::{Descriptors, Pid};
use super::super::program::{Program, Turn};
use super::code::Place;
use super::resume::{CAPTURE, WRITER};
use super::{Flow, Job, Shell, State};

impl Shell {
    /// A copy of this shell that goes on at a place.
    fn copy(&self, at: usize) -> Self {
        Self {
            name: self.name.clone(),
            zero: self.zero.clone(),
            arguments: self.arguments.clone(),
            place: Place { code: Arc::clone(&self.place.code), at },
            frames: Vec::new(),
            variables: Arc::clone(&self.variables),
            functions: Arc::clone(&self.functions),
            // Actions are the parent's; what is ignored stays so.
            traps: self
                .traps
                .iter()
                .filter(|(_, action)| action.is_none())
                .map(|(sig, _)| (*sig, None))
                .collect(),
            slots: self.slots.clone(),
            status: self.status,
            process: self.process,
            background: self.background,
            jobs: Vec::new(),
            state: State::Running,
            pending: Vec::new(),
            forked: true,
            strict: self.strict,
            leaving: None,
            until: crate::time::Time::ZERO,
            debt: std::time::Duration::ZERO,
            busy: 0,
        }
    }

    /// The shell's descriptors, for a child.
    pub(super) fn descriptors(me: Pid, kernel: &Kernel) -> Descriptors {
        let mut descriptors =
            kernel.processes.get(&me).map(|process| process.descriptors).unwrap_or_default();
        descriptors[CAPTURE] = None;
        descriptors[WRITER] = None;
        descriptors
    }

    /// Begins a process with a program. It is this shell's end if there can be no more processes.
    pub(super) fn begin(
        &mut self,
        program: Program,
        descriptors: Descriptors,
        me: Pid,
        kernel: &mut Kernel,
    ) -> Result<u64, Flow> {
        let at = kernel.work(me, self.until, std::mem::take(&mut self.debt) + cost::EXEC);
        self.until = at;
        match kernel.spawn(me, program, descriptors, at) {
            Ok((_, inner)) => Ok(inner),
            Err(Errno::Killed) => Err(Flow::Stop(Turn::Wait)),
            Err(error) => {
                kernel.say(me, 2, &format!("{}: can't fork: {}\n", self.name, error.text()));
                Err(self.leave(2, me, kernel))
            }
        }
    }

    /// Begins a copy of this shell at a place.
    pub(super) fn fork(
        &mut self,
        at: usize,
        descriptors: Descriptors,
        me: Pid,
        kernel: &mut Kernel,
    ) -> Result<u64, Flow> {
        let copy = self.copy(at);
        self.begin(Program::Shell(Box::new(copy)), descriptors, me, kernel)
    }

    /// Waits for processes in the foreground.
    pub(super) fn wait_for(&mut self, children: Vec<u64>) -> Flow {
        let children = children.into_iter().map(|inner| Job { inner, code: None }).collect();
        self.state = State::Children(children);
        Flow::Go
    }
}
