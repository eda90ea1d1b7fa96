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

/// Returns the names of the options that are stated.
pub(crate) fn stated<const N: usize>(options: [(&'static str, bool); N]) -> Vec<&'static str> {
    options.into_iter().filter(|(_, is_stated)| *is_stated).map(|(name, _)| name).collect()
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

    /// Rejects stated options that only apply to the backend `owner`, unless this is the backend.
    ///
    /// # Errors
    /// The error names the first of the options.
    pub(crate) fn reject_foreign_options(self, owner: Self, stated: &[&str]) -> Result<(), Failure> {
        let Some(option) = stated.first().filter(|_| self != owner) else { return Ok(()) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_backend_itself_are_accepted() {
        for (backend, is_rejected) in [(BackendName::Kind, false), (BackendName::Embedded, true)] {
            let options = stated([("--cluster", false), ("--keep", true)]);
            let result = backend.reject_foreign_options(BackendName::Kind, &options);
            assert_eq!(result.is_err(), is_rejected, "{backend:?}");
        }
        assert!(BackendName::Embedded.reject_foreign_options(BackendName::Kind, &[]).is_ok());
    }
}
