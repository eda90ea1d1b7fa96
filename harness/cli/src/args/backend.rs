//! The `--backend` option, and the check that the other options fit it.

use evictlab_report::BackendName;

use crate::failure::Failure;
use crate::profile::removal;

/// Values of `--backend`: every backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BackendArg {
    /// Kubelets modelled in this process: nothing to install, runs in seconds
    Embedded,
    /// Real kubelets in Docker containers, on kind clusters
    Kind,
    /// A cluster that already exists, by its kubeconfig: only temporary namespaces are created
    Existing,
}

impl From<BackendArg> for BackendName {
    fn from(backend: BackendArg) -> Self {
        match backend {
            BackendArg::Embedded => Self::Embedded,
            BackendArg::Kind => Self::Kind,
            BackendArg::Existing => Self::Existing,
        }
    }
}

/// Returns the names of the options that are stated.
pub(crate) fn stated<const N: usize>(options: [(&'static str, bool); N]) -> Vec<&'static str> {
    options.into_iter().filter(|(_, is_stated)| *is_stated).map(|(name, _)| name).collect()
}

/// Values of `--backend`: the backends whose nodes evictlab creates, with any kubelet.
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

/// Rejects stated options that only apply to the backend `owner`, unless `backend` is that one.
///
/// # Errors
/// The error names the first of the options.
pub(crate) fn reject_foreign_options(
    backend: BackendName,
    owner: BackendName,
    stated: &[&str],
) -> Result<(), Failure> {
    let Some(option) = stated.first().filter(|_| backend != owner) else { return Ok(()) };
    let removal = removal(option).unwrap_or_else(|| format!("remove {option}"));
    Err(Failure::bad_input(format!(
        "{option} requires --backend {owner}, and the backend is {backend}\nhelp: {removal}, or add --backend {owner}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_backend_itself_are_accepted() {
        for (backend, is_rejected) in [(BackendName::Kind, false), (BackendName::Embedded, true)] {
            let options = stated([("--cluster", false), ("--keep", true)]);
            let result = reject_foreign_options(backend, BackendName::Kind, &options);
            assert_eq!(result.is_err(), is_rejected, "{backend:?}");
        }
        assert!(reject_foreign_options(BackendName::Embedded, BackendName::Kind, &[]).is_ok());
    }
}
