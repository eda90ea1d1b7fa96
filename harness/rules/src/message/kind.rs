//! Kinds of evictions.

use std::fmt;

use super::{EvictionMessage, NodePressure};

/// Reason of the Evicted event and of the status of an evicted or rejected pod (`Reason` in
/// pkg/kubelet/eviction/helpers.go).
pub const EVICTED_REASON: &str = "Evicted";

/// Prefixes of the message of a pod that failed the kubelet's admission: of the present one, and of
/// older ones (`rejectPod` in `pkg/kubelet/kubelet.go`).
const REJECTION_PREFIXES: [&str; 2] = ["Pod was rejected: ", "Pod "];

/// Returns whether a message states that the kubelet rejected a pod at admission, in an event or in
/// a status. A pod that is rejected because of node pressure has the reason of an eviction,
/// `Evicted`, and was not evicted: it never ran.
pub fn is_rejection_message(message: &str) -> bool {
    let [present, _] = REJECTION_PREFIXES;
    let cause = REJECTION_PREFIXES.iter().find_map(|prefix| message.strip_prefix(prefix)).unwrap_or(message);
    message.starts_with(present) || matches!(cause.parse(), Ok(EvictionMessage::Rejected { .. }))
}

/// The cause of an eviction, by the form of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionKind {
    /// The node was low on a resource.
    NodePressure,
    /// An emptyDir volume exceeded its size limit.
    EmptyDirLimit,
    /// The pod exceeded the sum of its containers' ephemeral-storage limits.
    PodLimit,
    /// A container exceeded its ephemeral-storage limit.
    ContainerLimit,
    /// The kubelet rejected the pod at admission because of node pressure: the pod never ran.
    Rejected,
}

impl EvictionKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::NodePressure, Self::EmptyDirLimit, Self::PodLimit, Self::ContainerLimit, Self::Rejected];

    /// Returns the name, which is the `kind` of a serialized [`EvictionMessage`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NodePressure => "node-pressure",
            Self::EmptyDirLimit => "empty-dir-limit",
            Self::PodLimit => "pod-limit",
            Self::ContainerLimit => "container-limit",
            Self::Rejected => "rejected",
        }
    }

    /// Returns whether the pod exceeded a limit of its own.
    pub fn is_limit(self) -> bool {
        match self {
            Self::EmptyDirLimit | Self::PodLimit | Self::ContainerLimit => true,
            Self::NodePressure | Self::Rejected => false,
        }
    }
}

impl fmt::Display for EvictionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl EvictionMessage {
    /// Returns the message of a node-pressure eviction; `None` for one of another kind.
    pub fn node_pressure(&self) -> Option<&NodePressure> {
        match self {
            Self::NodePressure(pressure) => Some(pressure),
            Self::EmptyDirLimit { .. }
            | Self::PodLimit { .. }
            | Self::ContainerLimit { .. }
            | Self::Rejected { .. } => None,
        }
    }

    /// Returns the kind of the eviction.
    pub fn kind(&self) -> EvictionKind {
        match self {
            Self::NodePressure(_) => EvictionKind::NodePressure,
            Self::EmptyDirLimit { .. } => EvictionKind::EmptyDirLimit,
            Self::PodLimit { .. } => EvictionKind::PodLimit,
            Self::ContainerLimit { .. } => EvictionKind::ContainerLimit,
            Self::Rejected { .. } => EvictionKind::Rejected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_name_that_its_message_is_serialized_with() {
        let messages = [
            "The node was low on resource: memory. ",
            "Usage of EmptyDir volume \"v\" exceeds the limit \"20Mi\". ",
            "Pod ephemeral local storage usage exceeds the total limit of containers 40Mi. ",
            "Container c exceeded its local ephemeral storage limit \"20Mi\". ",
            "The node had condition: [DiskPressure]. ",
        ];
        for (text, kind) in messages.into_iter().zip(EvictionKind::ALL) {
            let message: EvictionMessage = text.parse().unwrap();
            assert_eq!(message.kind(), kind, "{text}");
            assert_eq!(serde_json::to_value(&message).unwrap()["kind"], kind.as_str());
        }
    }
}
