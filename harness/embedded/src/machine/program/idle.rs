//! Programs that only wait.

use crate::machine::calibration;
use crate::machine::ids::Pid;
use crate::machine::kernel::{Kernel, Program};
use crate::machine::open_file::{STDERR, STDOUT};
use crate::machine::step::{Footprint, SIGINT, SIGTERM, SignalAction, SignalNumber, StepOutcome};

/// A program that waits for a signal.
pub(super) enum Idle {
    /// A command that the model does not run. It prints that once.
    Unsupported { command: String, is_reported: bool },
    /// The program of the pause image.
    Pause,
    /// `agnhost pause`
    AgnhostPause { is_started: bool },
    /// A child of `stress pids` of evictlab's image.
    StressChild,
    /// kube-proxy.
    KubeProxy,
}

impl Idle {
    /// Returns the program for a command that the model does not run.
    pub(super) fn unsupported(command: impl Into<String>) -> Self {
        Self::Unsupported { command: command.into(), is_reported: false }
    }
}

impl Program for Idle {
    fn name(&self) -> String {
        match self {
            Self::Unsupported { command, .. } => {
                let first = command.trim_matches('"').split([' ', '"']).next().unwrap_or_default();
                first.rsplit('/').next().unwrap_or_default().chars().take(15).collect()
            }
            Self::Pause => "pause".to_owned(),
            Self::AgnhostPause { .. } => "agnhost".to_owned(),
            Self::StressChild => "stress".to_owned(),
            Self::KubeProxy => "kube-proxy".to_owned(),
        }
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::Unsupported { .. } => Footprint::APPLET,
            Self::Pause => Footprint {
                anon: calibration::SANDBOX.0,
                kernel: calibration::SANDBOX.1 - calibration::CONTAINER_KERNEL,
                tasks: 1,
            },
            Self::AgnhostPause { .. } => Footprint::AGNHOST,
            Self::StressChild => Footprint::EVICTLAB_STRESS,
            Self::KubeProxy => Footprint {
                anon: calibration::KUBE_PROXY.0,
                kernel: calibration::KUBE_PROXY.1,
                tasks: calibration::GO_THREADS,
            },
        }
    }

    fn signal_action(&self, signal: SignalNumber, is_init: bool) -> SignalAction {
        match (self, signal) {
            (Self::Pause | Self::AgnhostPause { .. }, SIGINT | SIGTERM) => SignalAction::Deliver,
            // Go's runtime exits with 2 where the kernel ignores the signal that it raises again.
            (Self::KubeProxy, SIGINT | SIGTERM) => SignalAction::Exit(2),
            _ => SignalAction::default_for(signal, is_init),
        }
    }

    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        match self {
            Self::Unsupported { command, is_reported } => {
                if !std::mem::replace(is_reported, true) {
                    let text = format!("evictlab: this model does not run {command}: the container idles\n");
                    kernel.print(pid, STDERR, &text);
                }
                StepOutcome::Wait
            }
            Self::KubeProxy | Self::StressChild => StepOutcome::Wait,
            // build/pause/linux/pause.c
            Self::Pause => match kernel.take_signals(pid).first() {
                Some(signal) => {
                    let name = if *signal == SIGTERM { "Terminated" } else { "Interrupt" };
                    kernel.print(pid, STDERR, &format!("Shutting down, got signal: {name}\n"));
                    StepOutcome::Exit(0)
                }
                None => StepOutcome::Wait,
            },
            // test/images/agnhost/pause/pause.go
            Self::AgnhostPause { is_started } => {
                if !std::mem::replace(is_started, true) {
                    kernel.print(pid, STDOUT, "Paused\nSignals registered\n");
                }
                match kernel.take_signals(pid).first() {
                    Some(signal) => {
                        let (name, code) =
                            if *signal == SIGTERM { ("terminated", 2) } else { ("interrupt", 1) };
                        kernel.print(pid, STDOUT, &format!("exiting because of signal {name:?}\n"));
                        StepOutcome::Exit(code)
                    }
                    None => StepOutcome::Wait,
                }
            }
        }
    }
}
