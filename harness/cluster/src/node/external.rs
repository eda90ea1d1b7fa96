//! Restrictions of nodes that evictlab does not manage.

use std::sync::Arc;

use evictlab_case::MAX_CREATED_PODS;
use evictlab_report::text::first_of;

use crate::workload::NamespaceGuards;

/// Restrictions of a node in a cluster that evictlab does not manage. Its kubelet is never changed.
#[derive(Clone, Debug)]
pub struct ExternalNode {
    /// Reason that no case may put the node under pressure; `None` if cases may.
    pub pressure_forbidden: Option<PressureForbidden>,
    /// Nodes on the same kernel that no case may put under pressure. They share disk and process
    /// ids with this node. Empty on a node that no case may put under pressure.
    pub shared_kernel_nodes: Arc<[String]>,
    /// True if pressure is allowed although other pods run on the node.
    pub allow_other_pods: bool,
    /// True if pods may have privileges beyond the Pod Security Standard `baseline`.
    pub allow_privileged: bool,
    /// Maximum memory or disk that a case may consume, in bytes.
    pub max_pressure_bytes: u64,
    /// True if the scheduler may delete pods of others for scheduled pods without a priority class:
    /// the cluster has a default class that preempts.
    pub scheduled_pods_preempt: bool,
}

impl ExternalNode {
    /// Guards of the namespaces whose pods run on the node.
    pub fn guards(&self) -> NamespaceGuards {
        NamespaceGuards { baseline_pods_only: !self.allow_privileged, max_pods: Some(MAX_CREATED_PODS) }
    }
}

/// Reason that no case may put a node under pressure, as the second half of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PressureForbidden {
    /// `--allow-disruption` is not set.
    #[error("which requires --allow-disruption")]
    NotAllowed,
    /// The node is neither selected nor tainted.
    #[error("and this node is neither selected (--node-selector) nor tainted")]
    NotDedicated,
    /// Pods of other users are running on the node.
    #[error(
        "and this node runs other pods ({}): select it (--node-selector) with --allow-other-pods if they may be evicted",
        first_of(.0, 2)
    )]
    InUse(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviates_long_lists_of_pods() {
        let many = ["a/1", "a/2", "a/3", "a/4"].map(str::to_owned);
        let reason = PressureForbidden::InUse(many.to_vec()).to_string();
        assert!(reason.contains("(a/1, a/2 and 2 more)"), "{reason}");
    }
}
