//! The `--backend` option, and the check that the other options fit it.

use evictlab_report::clock::Clock;

use crate::failure::{Failure, bad_input};
use crate::profile::removal;

/// Every backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BackendName {
    /// Kubelets modelled in this process: nothing to install, runs in seconds
    Embedded,
    /// Real kubelets in Docker containers, on kind clusters
    Kind,
    /// A cluster that already exists, by its kubeconfig: only temporary namespaces are created
    Existing,
}

/// The backends whose nodes evictlab creates, with any kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ManagedBackend {
    /// Kubelets modelled in this process: nothing to install, runs in seconds
    Embedded,
    /// Real kubelets in Docker containers, on kind clusters
    Kind,
}

impl From<ManagedBackend> for BackendName {
    fn from(backend: ManagedBackend) -> Self {
        match backend {
            ManagedBackend::Embedded => Self::Embedded,
            ManagedBackend::Kind => Self::Kind,
        }
    }
}

impl BackendName {
    /// Returns whether the backend has simulated time, which advances as fast as the work allows.
    pub(crate) fn has_model_time(self) -> bool {
        self == Self::Embedded
    }

    /// Returns the clock of the backend. The model's clock requires a paused runtime clock.
    pub(crate) fn clock(self) -> Clock {
        if self.has_model_time() { Clock::model() } else { Clock::wall() }
    }

    /// Rejects the given options, which only apply to the backend `owner`.
    ///
    /// # Errors
    ///
    /// Names the first option that is present.
    pub(crate) fn reject_foreign_options(self, owner: Self, options: &[(bool, &str)]) -> Result<(), Failure> {
        let Some((_, option)) = options.iter().find(|(given, _)| *given) else { return Ok(()) };
        let (this, owner) = (self.name(), owner.name());
        let removal = removal(option).unwrap_or_else(|| format!("remove {option}"));
        Err(bad_input(format!(
            "{option} requires --backend {owner}, and the backend is {this}\nhelp: {removal}, or add --backend {owner}"
        )))
    }

    /// Returns the name, as on the command line and in the events of a run.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Kind => "kind",
            Self::Existing => "existing",
        }
    }
}
