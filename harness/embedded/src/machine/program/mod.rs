//! Programs: what a process does, understood from its command line.

mod agnhost;
mod argument;
mod copy;
mod dd;
mod filter;
mod idle;
mod image;
mod load;
mod logs;
mod own;
mod sleep;
mod stress;
mod tail;

use std::time::Duration;

pub(super) use argument::bytes;
pub(super) use load::{Loaded, load};

use self::agnhost::Agnhost;
use self::copy::Copy;
use self::filter::Filter;
pub(super) use self::idle::Idle;
use self::logs::Logs;
use self::own::Own;
use self::sleep::Sleep;
use self::stress::{Stress, Whose};
use self::tail::Tail;
use super::ContainerSpec;
use super::cost;
use super::kernel::Kernel;
use super::process::{Pid, SIGTERM, Sig};
use super::shell::Shell;
use crate::time::Time;

/// What a process does after its turn.
pub(super) enum Turn {
    /// It goes on then.
    At(Time),
    /// It goes on when something happens that it waits for.
    Wait,
    /// It ends.
    Exit(i32),
    /// Another program takes its place.
    Become(Box<Program>),
}

/// What a program does about a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Nothing.
    Ignore,
    /// It ends with this status.
    Exit(i32),
    /// It does something of its own.
    Know,
}

/// What a program takes of memory when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    pub anon: u64,
    pub kernel: u64,
    /// The process itself and its threads.
    pub threads: u64,
}

impl Footprint {
    const APPLET: Self = Self { anon: cost::APPLET, kernel: cost::PROCESS_KERNEL, threads: 1 };
    const SHELL: Self = Self { anon: cost::SHELL.0, kernel: cost::SHELL.1, threads: 1 };
    const OURS: Self = Self { anon: cost::OURS.0, kernel: cost::OURS.1, threads: 1 };
    const AGNHOST: Self = Self { anon: cost::AGNHOST.0, kernel: cost::AGNHOST.1, threads: cost::GO_THREADS };
}

/// A program and where it stands.
pub(super) enum Program {
    Sleep(Sleep),
    Idle(Idle),
    Shell(Box<Shell>),
    Stress(Box<Stress>),
    Agnhost(Agnhost),
    Logs(Logs),
    Copy(Box<Copy>),
    Tail(Tail),
    Filter(Box<Filter>),
    Own(Box<Own>),
    /// Says something and ends.
    Say {
        name: &'static str,
        text: String,
        stderr: bool,
        code: i32,
    },
}

impl Program {
    /// What runs in a container.
    pub fn of_container(spec: &ContainerSpec) -> Self {
        let line = image::command_line(spec);
        match line {
            None => Self::Idle(Idle::unknown(format!("the image \"{}\"", spec.image))),
            Some(line) => match load(&line, &spec.env) {
                Loaded::Program(program) => *program,
                // What a shell would do itself, it does as a program too.
                Loaded::Quick => Self::Shell(Box::new(Shell::of_words(&line, &spec.env))),
                Loaded::Unknown => Self::Idle(Idle::unknown(format!("\"{}\"", line.join(" ")))),
            },
        }
    }

    /// What the kernel calls it.
    pub fn name(&self) -> String {
        match self {
            Self::Sleep(_) => "sleep".to_owned(),
            Self::Idle(idle) => idle.name(),
            Self::Shell(shell) => shell.name(),
            Self::Stress(stress) => stress.whose().program().to_owned(),
            Self::Own(_) => "stress".to_owned(),
            Self::Agnhost(_) | Self::Logs(_) => "agnhost".to_owned(),
            Self::Copy(copy) => copy.name.to_owned(),
            Self::Tail(_) => "tail".to_owned(),
            Self::Filter(filter) => filter.name.to_owned(),
            Self::Say { name, .. } => (*name).to_owned(),
        }
    }

    pub fn footprint(&self) -> Footprint {
        match self {
            Self::Sleep(_) | Self::Copy(_) | Self::Tail(_) | Self::Filter(_) | Self::Say { .. } => {
                Footprint::APPLET
            }
            Self::Idle(idle) => idle.footprint(),
            Self::Shell(_) => Footprint::SHELL,
            Self::Stress(stress) => stress.footprint(),
            Self::Own(_) => Footprint::OURS,
            Self::Agnhost(_) | Self::Logs(_) => Footprint::AGNHOST,
        }
    }

    /// What it does about a signal other than SIGKILL; `first` says whether it is its container's first process, for which the kernel ignores
    /// what it does not handle (pid_namespaces(7)).
    pub fn on(&self, sig: Sig, first: bool) -> Reaction {
        let default = if first { Reaction::Ignore } else { Reaction::Exit(128 + i32::from(sig)) };
        // SIGCHLD, SIGURG, SIGWINCH, SIGCONT and those that stop.
        if matches!(sig, 17..=23 | 28) {
            return Reaction::Ignore;
        }
        match self {
            Self::Shell(shell) => shell.on(sig, first),
            Self::Own(own) if matches!(sig, 2 | SIGTERM) => own.on_term(),
            Self::Stress(stress) if stress.whose() == Whose::Evictlab && matches!(sig, 2 | SIGTERM) => {
                Reaction::Exit(2)
            }
            Self::Agnhost(agnhost) if agnhost.handles(sig) => Reaction::Know,
            // Go's runtime dies of the signal; a first process does not die of it and is told to exit with 2 then (runtime/signal_unix.go).
            Self::Agnhost(_) | Self::Stress(_) | Self::Logs(_) if matches!(sig, 1 | 2 | SIGTERM) && first => {
                Reaction::Exit(2)
            }
            Self::Idle(idle) => idle.on(sig).unwrap_or(default),
            _ => default,
        }
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        if !matches!(self, Self::Shell(_)) {
            // Only shells care for their children.
            if let Some(process) = kernel.processes.get_mut(&me) {
                process.ended.clear();
            }
        }
        match self {
            Self::Sleep(sleep) => sleep.step(kernel),
            Self::Idle(idle) => idle.step(me, kernel),
            Self::Shell(shell) => shell.step(me, kernel),
            Self::Stress(stress) => stress.step(me, kernel),
            Self::Agnhost(agnhost) => agnhost.step(me, kernel),
            Self::Logs(logs) => logs.step(me, kernel),
            Self::Copy(copy) => copy.step(me, kernel),
            Self::Tail(tail) => tail.step(me, kernel),
            Self::Filter(filter) => filter.step(me, kernel),
            Self::Own(own) => own.step(me, kernel),
            Self::Say { text, stderr, code, .. } => {
                kernel.say(me, if *stderr { 2 } else { 1 }, text);
                Turn::Exit(*code)
            }
        }
    }
}

impl Kernel {
    /// Writes a text to a descriptor of a process; what cannot be written is lost.
    pub fn say(&mut self, me: Pid, descriptor: usize, text: &str) {
        let open = self.processes.get(&me).and_then(|process| process.descriptors[descriptor]);
        if let Some(open) = open {
            let _ = self.write(me, open, super::data::Data::text(text));
        }
    }

    /// A line as klog writes it to stderr; `place` is the source's file and line.
    pub fn klog(&mut self, me: Pid, place: &str, text: &str) {
        let inner = self.processes.get(&me).map_or(0, |process| process.inner);
        let at = self.epoch.at(self.now).strftime("%m%d %H:%M:%S%.6f");
        self.say(me, 2, &format!("I{at} {inner:>7} {place}] {text}\n"));
    }
}

/// For how long a slice of work goes that would take so long altogether.
pub(super) fn slice(bytes: u64, rate: u64) -> (u64, Duration) {
    const SLICE: Duration = Duration::from_millis(20);
    let most = rate / 50;
    if bytes > most { (most, SLICE) } else { (bytes, cost::at_rate(bytes, rate)) }
}
