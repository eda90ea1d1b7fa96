//! A shell, as busybox has one (ash): it goes from operation to operation and stops where it has to wait.

mod builtin;
mod child;
mod code;
mod compile;
mod expand;
mod operate;
mod quick;
mod redirect;
mod resume;
mod test;
mod text;
mod trap;
mod word;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub(super) use quick::is_quick;

use self::code::{Code, Command, Op, Place, Word};
use self::compile::{Unfit, compile};
use super::cost;
use super::data::Data;
use super::kernel::Kernel;
use super::process::{Pid, Sig};
use super::program::{Idle, Program, Reaction, Turn};
use crate::time::Time;

/// A script that does nothing but builtins for so many turns is slowed down: its loops cost the model more than they tell.
const PATIENCE: u32 = 50;
/// By how much.
const SLOWER: u32 = 50;

/// A shell and where it stands.
pub(super) struct Shell {
    name: String,
    zero: String,
    arguments: Vec<String>,
    place: Place,
    frames: Vec<Frame>,
    variables: Arc<BTreeMap<String, String>>,
    functions: Arc<BTreeMap<String, Place>>,
    /// By signal; none: the signal is ignored. 0 is the shell's end.
    traps: BTreeMap<Sig, Option<Arc<Code>>>,
    /// What command substitutions gave.
    slots: Vec<String>,
    status: i32,
    /// `$$`
    process: u64,
    /// `$!`
    background: Option<u64>,
    jobs: Vec<Job>,
    state: State,
    /// Signals for which a trap is to be run.
    pending: Vec<Sig>,
    /// It is a shell that another one forked.
    forked: bool,
    /// `set -e`
    strict: bool,
    /// With what it ends after its last trap.
    leaving: Option<i32>,
    /// Until when its work is done, of what it has done in its turn.
    until: Time,
    /// CPU time of what it has done since.
    debt: Duration,
    /// How many turns it has only computed.
    busy: u32,
}

/// A process in the background.
#[derive(Clone, Copy, Debug)]
struct Job {
    inner: u64,
    code: Option<i32>,
}

/// What a shell comes back to.
enum Frame {
    Loop {
        next: usize,
        end: usize,
        items: VecDeque<String>,
    },
    /// Descriptors as they were.
    Redirect(Vec<(usize, Option<usize>)>),
    /// A function, or what `eval` was given, or a trap's action, which leaves the status as it was.
    Call {
        back: Place,
        arguments: Option<Vec<String>>,
        status: Option<i32>,
        slots: Vec<String>,
    },
}

/// For what a shell waits.
enum State {
    Running,
    /// Processes in the foreground; the status is that of the last one.
    Children(Vec<Job>),
    /// A command substitution.
    Capture {
        child: Job,
        slot: usize,
        text: Vec<u8>,
        ended: bool,
    },
    /// `wait`, for these or for all.
    Wait(Option<Vec<u64>>),
    /// `read`
    Read(Vec<String>),
    /// A pipe is full.
    Write(Data),
}

/// What comes after an operation.
enum Flow {
    /// The next one.
    Go,
    /// A turn's end.
    Stop(Turn),
}

impl Shell {
    /// The shell of `sh …`; none if it reads a script from a file.
    pub fn of_arguments(
        name: &str,
        arguments: &[String],
        environment: &BTreeMap<String, String>,
    ) -> Option<Program> {
        let mut strict = false;
        let mut rest = arguments.iter();
        let mut script = None;
        while let Some(word) = rest.next() {
            let flags = word.strip_prefix(['-', '+'])?;
            strict |= flags.contains('e') && word.starts_with('-');
            if flags.ends_with('o') {
                rest.next();
            }
            if flags.contains('c') {
                script = Some(rest.next()?);
                break;
            }
        }
        // Without a script it reads its input, and there is none.
        let Some(script) = script else {
            return Some(Program::Say { name: "sh", text: String::new(), stderr: false, code: 0 });
        };
        let code = match compile(script, Op::Done) {
            Ok(code) => code,
            Err(Unfit::Syntax(_)) => {
                let text = format!("{name}: syntax error\n");
                return Some(Program::Say { name: "sh", text, stderr: true, code: 2 });
            }
            Err(Unfit::Unsupported) => {
                let line = format!("\"{name} {}\"", arguments.join(" "));
                return Some(Program::Idle(Idle::unknown(line)));
            }
        };
        let mut shell = Self::new(code, environment);
        shell.name = name.to_owned();
        shell.zero = rest.next().cloned().unwrap_or_else(|| name.to_owned());
        shell.arguments = rest.cloned().collect();
        shell.strict = strict;
        Some(Program::Shell(Box::new(shell)))
    }

    /// A shell that runs one command of plain words.
    pub fn of_words(words: &[String], environment: &BTreeMap<String, String>) -> Self {
        let words: Vec<Word> = words.iter().map(|word| Word::literal(word)).collect();
        let name = "sh".to_owned();
        let command = Command { words, ..Command::default() };
        let code = Code { ops: vec![Op::Command(Box::new(command)), Op::Done], slots: 0 };
        Self { name, ..Self::new(code, environment) }
    }

    fn new(code: Code, environment: &BTreeMap<String, String>) -> Self {
        let slots = vec![String::new(); code.slots];
        Self {
            name: String::new(),
            zero: "sh".to_owned(),
            arguments: Vec::new(),
            place: Place { code: Arc::new(code), at: 0 },
            frames: Vec::new(),
            variables: Arc::new(environment.clone()),
            functions: Arc::default(),
            traps: BTreeMap::new(),
            slots,
            status: 0,
            process: 0,
            background: None,
            jobs: Vec::new(),
            state: State::Running,
            pending: Vec::new(),
            forked: false,
            strict: false,
            leaving: None,
            until: Time::ZERO,
            debt: Duration::ZERO,
            busy: 0,
        }
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// What it does about a signal.
    pub fn on(&self, sig: Sig, first: bool) -> Reaction {
        match self.traps.get(&sig) {
            Some(Some(_)) => Reaction::Know,
            Some(None) => Reaction::Ignore,
            None if first => Reaction::Ignore,
            None => Reaction::Exit(128 + i32::from(sig)),
        }
    }

    /// Does operations until it has to wait.
    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        if self.process == 0 {
            self.process = kernel.processes.get(&me).map_or(0, |process| process.inner);
        }
        self.debt = Duration::ZERO;
        self.until = kernel.now;
        let mut effects = false;
        loop {
            self.hear(me, kernel);
            if let Some(turn) = self.resume(me, kernel) {
                self.busy = 0;
                return turn;
            }
            self.run_traps();
            let before = (self.debt, self.until);
            if let Flow::Stop(turn) = self.operate(me, kernel) {
                self.busy = 0;
                return turn;
            }
            if !kernel.processes.contains_key(&me) {
                return Turn::Wait;
            }
            effects |= before != (self.debt, self.until);
            self.debt += cost::BUILTIN;
            if self.debt + self.until.since(kernel.now) >= cost::TURN {
                self.busy = if effects { 0 } else { self.busy.saturating_add(1) };
                let time = if self.busy > PATIENCE { self.debt * SLOWER } else { self.debt };
                return Turn::At(kernel.work(me, self.until, time));
            }
        }
    }
}
