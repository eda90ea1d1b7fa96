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
    /// A child of our own image's `pids`.
    Child,
    /// kube-proxy, which has little to do.
    Proxy,
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
            Self::Child => "stress".to_owned(),
            Self::Proxy => "kube-proxy".to_owned(),
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
            Self::Child => Footprint::OURS,
            Self::Proxy => {
                Footprint { anon: cost::PROXY.0, kernel: cost::PROXY.1, threads: cost::GO_THREADS }
            }
        }
    }

    pub fn on(&self, sig: Sig) -> Option<Reaction> {
        match self {
            // pause.c handles both, writes a line and exits with 0.
            Self::Pause => matches!(sig, 2 | SIGTERM).then_some(Reaction::Know),
            // Go's runtime ends with 2 where the kernel ignores what it raises again.
            Self::Proxy => matches!(sig, 2 | SIGTERM).then_some(Reaction::Exit(2)),
            Self::Unknown { .. } | Self::Child => None,
        }
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
            Self::Proxy | Self::Child => Turn::Wait,
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
