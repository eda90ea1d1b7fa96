//! Where nodes come from, and which options go with which of it.

use evictlab_runner::clock::Clock;

use crate::failure::{Failure, bad_input};

/// What models kubelets, or what runs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// A model of kubelets in this process: needs nothing installed, and takes seconds
    Embedded,
    /// kind clusters: real kubelets in Docker containers
    Kind,
    /// A cluster that is there already, by its kubeconfig: nothing of it is changed but for namespaces that come and go
    Existing,
}

impl Backend {
    /// Whether what runs on it has a time of its own, which goes as fast as the work allows.
    pub fn has_model_time(self) -> bool {
        self == Self::Embedded
    }

    /// The time of what runs on it. Where that is a model's, the runtime's clock must be paused.
    pub fn clock(self) -> Clock {
        if self.has_model_time() { Clock::model() } else { Clock::wall() }
    }

    /// Refuses options of another backend.
    pub fn refuse(self, theirs: Self, given: &[(bool, &str)]) -> Result<(), Failure> {
        let Some((_, name)) = given.iter().find(|(given, _)| *given) else { return Ok(()) };
        let (clusters, backend) = match theirs {
            Self::Embedded => ("the embedded cluster", "embedded"),
            Self::Kind => ("kind clusters", "kind"),
            Self::Existing => ("existing clusters", "existing"),
        };
        let (this, advice) = match self {
            Self::Embedded => ("an embedded one", "Add"),
            Self::Kind => ("a kind cluster", "Leave it out, or take"),
            Self::Existing => ("an existing one", "Leave it out, or take"),
        };
        Err(bad_input(format!("{name} is for {clusters}, and this is {this}\n{advice} --backend {backend}.")))
    }
}
