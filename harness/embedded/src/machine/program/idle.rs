//! What only waits, and what is not understood.

use super::super::cost;
use super::super::kernel::Kernel;
use super::super::process::{Pid, SIGTERM, Sig};
use super::{Footprint, Reaction, Turn};

/// Does nothing.
pub(in super::super) enum Idle {
    /// Nobody knows what it would do: it says so.
    Unknown { what: String, said: bool },
    /// The pause image.
    Pause,
}

impl Idle {
    /// For something that this model does not run.
    pub fn unknown(what: impl Into<String>) -> Self {
        Self::Unknown { what: what.into(), said: false }
    }

    pub fn name(&self) -> String {
        match self {
            Self::Unknown { what, .. } => {
                let first = what.trim_matches('"').split([' ', '"']).next().unwrap_or_default();
                first.rsplit('/').next().unwrap_or_default().chars().take(15).collect()
            }
            Self::Pause => "pause".to_owned(),
        }
    }

    pub fn footprint(&self) -> Footprint {
        match self {
            Self::Unknown { .. } => Footprint::APPLET,
            Self::Pause => Footprint {
                anon: cost::SANDBOX.0,
                kernel: cost::SANDBOX.1 - cost::CONTAINER_KERNEL,
                threads: 1,
            },
        }
    }

    pub fn on(&self, sig: Sig) -> Option<Reaction> {
        // pause.c handles both, writes a line and exits with 0.
        (matches!(self, Self::Pause) && matches!(sig, 2 | SIGTERM)).then_some(Reaction::Know)
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        match self {
            Self::Unknown { what, said } => {
                if !std::mem::replace(said, true) {
                    kernel.say(
                        me,
                        2,
                        &format!("evictlab: this model does not run {what}: the container idles\n"),
                    );
                }
                Turn::Wait
            }
            Self::Pause => {
                let signals =
                    kernel.processes.get_mut(&me).map(|process| std::mem::take(&mut process.signals));
                match signals.unwrap_or_default().first() {
                    Some(sig) => {
                        let what = if *sig == SIGTERM { "Terminated" } else { "Interrupt" };
                        kernel.say(me, 2, &format!("Shutting down, got signal: {what}\n"));
                        Turn::Exit(0)
                    }
                    None => Turn::Wait,
                }
            }
        }
    }
}
