//! Steps of programs, and signals to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::calibration;
use crate::sim::SimTime;

/// The state of a process after a step.
pub(super) enum StepOutcome {
    /// It runs again at this time.
    RunAt(SimTime),
    /// It runs again after an event: a signal, the exit of a child, data in a pipe.
    Wait,
    /// It exits with this status.
    Exit(i32),
    /// The program of a command line replaces it.
    Exec(CommandLine),
}

/// A command line.
pub(super) struct CommandLine {
    pub words: Vec<String>,
    pub environment: Arc<BTreeMap<String, String>>,
}

/// The number of a signal on Linux.
pub(crate) type SignalNumber = u8;

pub(super) const SIGHUP: SignalNumber = 1;
pub(super) const SIGINT: SignalNumber = 2;
pub(crate) const SIGKILL: SignalNumber = 9;
pub(crate) const SIGTERM: SignalNumber = 15;

/// The reaction of a program to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalAction {
    Ignore,
    /// It exits with this status.
    Exit(i32),
    /// It handles the signal in its next step.
    Deliver,
}

impl SignalAction {
    /// Returns what a signal does to a program that does not handle it. The kernel ignores it for
    /// the init of a PID namespace (pid_namespaces(7)).
    pub(super) fn default_for(signal: SignalNumber, is_init: bool) -> Self {
        if is_init { Self::Ignore } else { Self::Exit(128 + i32::from(signal)) }
    }
}

/// The memory and threads of a program when it starts, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    /// Anonymous memory.
    pub anon: u64,
    /// Kernel memory: stacks and page tables.
    pub kernel: u64,
    /// The process and its threads.
    pub tasks: u64,
}

impl Footprint {
    pub(super) const APPLET: Self =
        Self { anon: calibration::APPLET, kernel: calibration::PROCESS_KERNEL, tasks: 1 };
    pub(super) const SHELL: Self =
        Self { anon: calibration::SHELL.0, kernel: calibration::SHELL.1, tasks: 1 };
    pub(super) const EVICTLAB_STRESS: Self =
        Self { anon: calibration::EVICTLAB_STRESS.0, kernel: calibration::EVICTLAB_STRESS.1, tasks: 1 };
    pub(super) const AGNHOST: Self =
        Self { anon: calibration::AGNHOST.0, kernel: calibration::AGNHOST.1, tasks: calibration::GO_THREADS };
}

/// Returns how many of `bytes` a process handles in one step at `rate` bytes a second, and the CPU
/// time of that.
pub(super) fn slice(bytes: u64, rate: u64) -> (u64, Duration) {
    const SLICE: Duration = Duration::from_millis(20);
    let most = rate / 50;
    if bytes > most { (most, SLICE) } else { (bytes, calibration::at_rate(bytes, rate)) }
}
