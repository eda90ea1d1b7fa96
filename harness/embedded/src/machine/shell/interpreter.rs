//! The state of a shell, and its main loop.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::compile::compile;
use super::error::ShellError;
use super::script::{Command, Op, Position, Script, Word};
use crate::machine::calibration;
use crate::machine::ids::{OpenFileId, Pid, PipeId};
use crate::machine::kernel::{Kernel, Program};
use crate::machine::step::{Footprint, SignalAction, SignalNumber, StepOutcome};
use crate::sim::SimTime;

/// A shell that has no effect on memory, files or processes for more steps than this runs slower:
/// its loop costs the simulation more than it contributes.
const MAX_IDLE_STEPS: u32 = 50;
/// The factor by which it runs slower.
const SLOWDOWN: u32 = 50;

/// A shell.
pub(in super::super) struct Shell {
    /// The name in error messages.
    pub(super) name: String,
    pub(super) position: Position,
    pub(super) frames: Vec<Frame>,
    pub(super) variables: Arc<BTreeMap<String, String>>,
    /// Trap actions by signal; `None` ignores the signal.
    pub(super) traps: BTreeMap<SignalNumber, Option<Arc<Script>>>,
    /// The output of command substitutions, by slot.
    pub(super) captures: Vec<String>,
    pub(super) status: i32,
    /// `$$`
    pub(super) shell_pid: u64,
    /// `$!`
    pub(super) background_pid: Option<u64>,
    pub(super) jobs: Vec<Child>,
    pub(super) wait: Wait,
    /// Signals whose trap actions have not run yet.
    pub(super) pending_signals: Vec<SignalNumber>,
    /// True if another shell forked this one.
    pub(super) forked: bool,
    /// The time at which the CPU has done the work that this step requested.
    pub(super) busy_until: SimTime,
    /// CPU time of this step that was not requested yet.
    pub(super) cpu_time: Duration,
    /// Number of steps that had no effect.
    pub(super) idle_steps: u32,
}

/// A child process by its PID in the container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    pub pid: u64,
    /// The exit status; `None` while the child runs.
    pub status: Option<i32>,
}

impl Child {
    pub(super) fn running(pid: u64) -> Self {
        Self { pid, status: None }
    }
}

/// Descriptors and the files that redirections replaced.
pub(super) type SavedDescriptors = Vec<(usize, Option<OpenFileId>)>;

/// An entry of the stack of a shell.
pub(super) enum Frame {
    /// The items that are left of a `for` loop.
    Loop(VecDeque<String>),
    Redirect(SavedDescriptors),
    /// A trap action, which leaves the status as it is.
    Trap {
        return_to: Position,
        status: i32,
        captures: Vec<String>,
    },
}

/// The event that a shell waits for.
pub(super) enum Wait {
    Nothing,
    /// A foreground process.
    Foreground(Child),
    /// A command substitution.
    Capture {
        child: Child,
        /// The output of the child.
        pipe: PipeId,
        slot: usize,
        output: Vec<u8>,
        at_end: bool,
    },
    /// `wait`, for these processes or for all.
    Jobs(Option<Vec<u64>>),
}

impl Shell {
    /// Returns the shell of `NAME -c SCRIPT`.
    pub(crate) fn from_script(
        name: &str,
        script: &str,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, ShellError> {
        let script = compile(script, Op::Exit)?;
        Ok(Self { name: name.to_owned(), ..Self::run(script, environment) })
    }

    /// Returns a shell that runs one command.
    pub(crate) fn from_words(words: &[String], environment: &BTreeMap<String, String>) -> Self {
        let words: Vec<Word> = words.iter().map(|word| Word::literal(word)).collect();
        let command = Command { words, ..Command::default() };
        Self::run(Script { ops: vec![Op::Command(Box::new(command)), Op::Exit], captures: 0 }, environment)
    }

    fn run(script: Script, environment: &BTreeMap<String, String>) -> Self {
        let captures = vec![String::new(); script.captures];
        let position = Position { script: Arc::new(script), index: 0 };
        Self { captures, ..Self::new(position, Arc::new(environment.clone())) }
    }

    pub(super) fn new(position: Position, variables: Arc<BTreeMap<String, String>>) -> Self {
        Self {
            name: "sh".to_owned(),
            position,
            frames: Vec::new(),
            variables,
            traps: BTreeMap::new(),
            captures: Vec::new(),
            status: 0,
            shell_pid: 0,
            background_pid: None,
            jobs: Vec::new(),
            wait: Wait::Nothing,
            pending_signals: Vec::new(),
            forked: false,
            busy_until: SimTime::ZERO,
            cpu_time: Duration::ZERO,
            idle_steps: 0,
        }
    }
}

impl Program for Shell {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn footprint(&self) -> Footprint {
        Footprint::SHELL
    }

    fn signal_action(&self, signal: SignalNumber, is_init: bool) -> SignalAction {
        match self.traps.get(&signal) {
            Some(Some(_)) => SignalAction::Deliver,
            Some(None) => SignalAction::Ignore,
            None => SignalAction::default_for(signal, is_init),
        }
    }

    fn waits_for_children(&self) -> bool {
        true
    }

    /// Executes operations until the shell waits, exits or has used a time slice.
    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        if self.shell_pid == 0 {
            self.shell_pid = kernel.processes.get(&pid).map_or(0, |process| process.ns_pid);
        }
        self.cpu_time = Duration::ZERO;
        self.busy_until = kernel.now;
        let mut has_effect = false;
        loop {
            self.receive(pid, kernel);
            if let Some(outcome) = self.resume(pid, kernel) {
                self.idle_steps = 0;
                return outcome;
            }
            self.start_trap();
            let before = (self.cpu_time, self.busy_until);
            if let Some(outcome) = self.execute(pid, kernel) {
                self.idle_steps = 0;
                return outcome;
            }
            if !kernel.processes.contains_key(&pid) {
                return StepOutcome::Wait;
            }
            has_effect |= before != (self.cpu_time, self.busy_until);
            self.cpu_time += calibration::BUILTIN;
            if self.cpu_time + self.busy_until.since(kernel.now) >= calibration::TIME_SLICE {
                self.idle_steps = if has_effect { 0 } else { self.idle_steps.saturating_add(1) };
                let slowdown = if self.idle_steps > MAX_IDLE_STEPS { SLOWDOWN } else { 1 };
                return StepOutcome::RunAt(kernel.run_on_cpu(pid, self.busy_until, self.cpu_time * slowdown));
            }
        }
    }
}
