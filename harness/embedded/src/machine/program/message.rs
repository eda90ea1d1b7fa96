//! The program of a process.

use super::super::data::Data;
use super::super::ids::{Pid, SIGHUP, SIGINT, SIGTERM, STDERR, STDOUT, Signal};
use super::super::kernel::Kernel;
use super::super::shell::Shell;
use super::agnhost_stress::{AgnhostStress, StressVariant};
use super::copy::CopyProgram;
use super::evictlab_stress::EvictlabStress;
use super::idle::Idle;
use super::sleep::Sleep;
use super::step::{Footprint, SignalAction, StepOutcome};

/// A program and its state.
pub(in super::super) enum Program {
    Sleep(Sleep),
    Idle(Idle),
    Shell(Box<Shell>),
    AgnhostStress(Box<AgnhostStress>),
    EvictlabStress(Box<EvictlabStress>),
    Copy(Box<CopyProgram>),
    /// Prints a text and exits.
    Message {
        name: &'static str,
        text: String,
        stderr: bool,
        code: i32,
    },
}

impl Program {
    /// Returns a program that prints an error and exits.
    pub(super) fn error(name: &'static str, text: String, code: i32) -> Self {
        Self::Message { name, text, stderr: true, code }
    }

    /// Returns the name of the process (`comm`).
    pub fn name(&self) -> String {
        match self {
            Self::Sleep(_) => "sleep".to_owned(),
            Self::Idle(idle) => idle.name(),
            Self::Shell(shell) => shell.name().to_owned(),
            Self::AgnhostStress(stress) => stress.name().to_owned(),
            Self::EvictlabStress(_) => "stress".to_owned(),
            Self::Copy(copy) => copy.name.to_owned(),
            Self::Message { name, .. } => (*name).to_owned(),
        }
    }

    pub fn footprint(&self) -> Footprint {
        match self {
            Self::Sleep(_) | Self::Copy(_) | Self::Message { .. } => Footprint::APPLET,
            Self::Idle(idle) => idle.footprint(),
            Self::Shell(_) => Footprint::SHELL,
            Self::AgnhostStress(stress) => stress.footprint(),
            Self::EvictlabStress(_) => Footprint::EVICTLAB_STRESS,
        }
    }

    /// Returns what the program does about a signal other than SIGKILL. The kernel ignores signals
    /// that the init of a PID namespace does not handle (pid_namespaces(7)).
    pub fn signal_action(&self, signal: Signal, is_init: bool) -> SignalAction {
        let default =
            if is_init { SignalAction::Ignore } else { SignalAction::Exit(128 + i32::from(signal)) };
        match self {
            Self::Shell(shell) => shell.signal_action(signal, is_init),
            Self::EvictlabStress(stress) if matches!(signal, SIGINT | SIGTERM) => stress.on_term(),
            Self::AgnhostStress(stress)
                if stress.variant() == StressVariant::Evictlab && matches!(signal, SIGINT | SIGTERM) =>
            {
                SignalAction::Exit(2)
            }
            // Go's runtime raises the signal again, and exits with 2 if it survives that
            // (runtime/signal_unix.go).
            Self::AgnhostStress(_) if matches!(signal, SIGHUP | SIGINT | SIGTERM) && is_init => {
                SignalAction::Exit(2)
            }
            Self::Idle(idle) => idle.signal_action(signal).unwrap_or(default),
            _ => default,
        }
    }

    /// Runs the program until it waits.
    pub fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        if !matches!(self, Self::Shell(_))
            && let Some(process) = kernel.processes.get_mut(&pid)
        {
            // Only shells wait for their children.
            process.exited_children.clear();
        }
        match self {
            Self::Sleep(sleep) => sleep.step(kernel),
            Self::Idle(idle) => idle.step(pid, kernel),
            Self::Shell(shell) => shell.step(pid, kernel),
            Self::AgnhostStress(stress) => stress.step(pid, kernel),
            Self::EvictlabStress(stress) => stress.step(pid, kernel),
            Self::Copy(copy) => copy.step(pid, kernel),
            Self::Message { text, stderr, code, .. } => {
                kernel.print(pid, if *stderr { STDERR } else { STDOUT }, text);
                StepOutcome::Exit(*code)
            }
        }
    }
}

impl From<Idle> for Program {
    fn from(idle: Idle) -> Self {
        Self::Idle(idle)
    }
}

impl Kernel {
    /// Writes a text to a descriptor of a process. Errors are ignored.
    pub fn print(&mut self, pid: Pid, descriptor: usize, text: &str) {
        if let Some(file) = self.descriptor(pid, descriptor) {
            let _ = self.write(pid, file, Data::text(text));
        }
    }
}
