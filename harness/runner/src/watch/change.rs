//! Something that happened while a cluster was watched.

use jiff::Timestamp;

use crate::report::Ink;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Another pod is the first to go.
    Head,
    /// Less than a threshold is left.
    Crossed,
    /// As much is left again.
    Left,
    /// The kubelet has other thresholds.
    Configured,
    /// A condition is true now.
    Condition,
    /// A condition is true no more.
    ConditionOver,
    /// A pod is evicted.
    Evicted,
    /// A pod has ended, or was deleted.
    Gone,
    /// A node came, or answers again.
    Came,
    /// A node went, or does not answer.
    Lost,
    /// The API server does not answer.
    Silent,
    /// It does again.
    Answers,
}

impl What {
    /// The word in front of the text.
    pub fn word(self) -> &'static str {
        match self {
            Self::Head => "first",
            Self::Crossed => "below",
            Self::Left => "above",
            Self::Configured => "thresholds",
            Self::Condition | Self::ConditionOver => "condition",
            Self::Evicted => "evicted",
            Self::Gone => "gone",
            Self::Came => "back",
            Self::Lost => "lost",
            Self::Silent | Self::Answers => "server",
        }
    }

    /// Its ink.
    pub fn ink(self) -> Ink {
        match self {
            Self::Crossed | Self::Condition | Self::Lost | Self::Silent => Ink::Red,
            Self::Left | Self::ConditionOver | Self::Came | Self::Answers => Ink::Green,
            Self::Evicted => Ink::Magenta,
            Self::Head | Self::Configured => Ink::Cyan,
            Self::Gone => Ink::Dim,
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// When it was noticed.
    pub at: Timestamp,
    /// The node; none for the whole cluster.
    pub node: String,
    pub what: What,
    /// In words.
    pub text: String,
}
