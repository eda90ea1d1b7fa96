//! Changes of a watched cluster.

use jiff::Timestamp;

use evictlab_report::Style;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// Another pod is the first eviction candidate.
    TopCandidateChanged,
    /// The signal fell below a threshold.
    ThresholdCrossed,
    /// The signal rose above a threshold.
    ThresholdCleared,
    /// The configured thresholds changed.
    ThresholdsChanged,
    /// A node condition became true.
    ConditionSet,
    /// A node condition is no longer true.
    ConditionCleared,
    /// A pod was evicted.
    PodEvicted,
    /// A pod ended or was deleted.
    PodGone,
    /// A node was added, or answers again.
    NodeRecovered,
    /// A node was removed, or does not answer.
    NodeLost,
    /// The API server does not answer.
    ServerLost,
    /// The API server answers again.
    ServerRecovered,
}

impl ChangeKind {
    /// Label in front of the text.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::TopCandidateChanged => "first",
            Self::ThresholdCrossed => "below",
            Self::ThresholdCleared => "above",
            Self::ThresholdsChanged => "thresholds",
            Self::ConditionSet | Self::ConditionCleared => "condition",
            Self::PodEvicted => "evicted",
            Self::PodGone => "gone",
            Self::NodeRecovered => "back",
            Self::NodeLost => "lost",
            Self::ServerLost | Self::ServerRecovered => "server",
        }
    }

    /// Style of the label.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::ThresholdCrossed | Self::ConditionSet | Self::NodeLost | Self::ServerLost => Style::Red,
            Self::ThresholdCleared | Self::ConditionCleared | Self::NodeRecovered | Self::ServerRecovered => {
                Style::Green
            }
            Self::PodEvicted => Style::Magenta,
            Self::TopCandidateChanged | Self::ThresholdsChanged => Style::Cyan,
            Self::PodGone => Style::Dim,
        }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchChange {
    /// Time of observation.
    pub at: Timestamp,
    /// Name of the node; empty for changes of the whole cluster.
    pub node: String,
    pub kind: ChangeKind,
    /// Description.
    pub text: String,
}
