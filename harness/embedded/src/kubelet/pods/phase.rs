//! Phase of a pod.

use serde_json::Value;

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    /// Returns the phase of a status, or `None` if it is missing or `Unknown`.
    pub fn read(status: &Value) -> Option<Self> {
        let name = status["phase"].as_str()?;
        [Self::Pending, Self::Running, Self::Succeeded, Self::Failed]
            .into_iter()
            .find(|phase| phase.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}
