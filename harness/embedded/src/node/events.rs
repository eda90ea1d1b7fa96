//! What is due on a node.

use crate::kubelet::KubeletEvent;

/// Something that a node has to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeEvent {
    /// A process has something to do.
    Machine,
    /// The kubelet has something to do.
    Kubelet(KubeletEvent),
}
