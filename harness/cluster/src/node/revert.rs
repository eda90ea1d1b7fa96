//! Reversal of the changes that cases make to a node.

use super::error::NodeError;
use super::worker::Node;

/// The changes of cases to revert, besides those of the kubelet configuration
/// ([`crate::kubelet_config`]) and of file systems ([`crate::node_resources`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeReversal {
    /// Resume the processes of the node.
    pub paused: bool,
    /// Remove the limit of the node's memory.
    pub memory_limit: bool,
    /// Delete static pods.
    pub static_pods: bool,
    /// Remove taints and extended resources.
    pub taints_and_resources: bool,
    /// Uncordon the node.
    pub cordon: bool,
    /// Remove unused images.
    pub unused_images: bool,
}

impl NodeReversal {
    /// Reverts the changes of any case, for a node whose last run may have been killed.
    pub const ALL: Self = Self {
        paused: true,
        memory_limit: true,
        static_pods: true,
        taints_and_resources: true,
        cordon: true,
        unused_images: true,
    };
}

impl Node {
    /// Reverts changes of cases. Each reversal is tried, and does nothing on a node without the
    /// change.
    ///
    /// # Errors
    /// The first reversal that failed.
    pub async fn revert(&self, reversal: NodeReversal) -> Result<(), NodeError> {
        let NodeReversal { paused, memory_limit, static_pods, taints_and_resources, cordon, unused_images } =
            reversal;
        let mut reverted = Ok(());
        // First: a paused node runs no commands.
        if paused {
            reverted = reverted.and(self.backend.set_paused(false).await);
        }
        if memory_limit {
            reverted = reverted.and(self.backend.limit_memory(None).await);
        }
        if static_pods {
            reverted = reverted.and(self.backend.delete_static_pods().await);
        }
        if taints_and_resources || cordon {
            reverted = reverted.and(self.clean(cordon).await);
        }
        if unused_images {
            reverted = reverted.and(self.backend.remove_unused_images().await);
        }
        reverted
    }
}
