//! Names of the backends.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

/// Backend of a run: the kind of cluster that provides the nodes. Sorted by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackendName {
    /// Kubelets modelled in this process.
    Embedded,
    /// A cluster that already exists, by its kubeconfig.
    Existing,
    /// Real kubelets in Docker containers, on kind clusters.
    Kind,
}

impl BackendName {
    /// Returns the name, as on the command line and in the events of a run.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Existing => "existing",
            Self::Kind => "kind",
        }
    }

    /// Returns whether the backend has simulated time, which advances as fast as the work allows.
    pub fn has_model_time(self) -> bool {
        self == Self::Embedded
    }

    /// Returns the clock of a run on the backend. The model's clock requires a runtime whose clock
    /// is paused.
    pub fn clock(self) -> Clock {
        if self.has_model_time() { Clock::model() } else { Clock::wall() }
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialized_names_are_those_of_the_command_line() {
        for (backend, name) in [
            (BackendName::Embedded, "embedded"),
            (BackendName::Existing, "existing"),
            (BackendName::Kind, "kind"),
        ] {
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.as_str());
            assert_eq!(backend.to_string(), name);
        }
    }
}
