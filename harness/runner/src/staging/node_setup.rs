//! Changes of a node that a case states, and their reversal.

use evictlab_case::{Case, NodeChange};
use evictlab_cluster::workload::{Placement, static_pod_manifest};
use evictlab_cluster::{Node, NodeError};
use serde_json::{Value, json};

/// Applies a case's memory limit, extended resources and static pods to its node.
pub(crate) async fn set_up_node(
    node: &Node,
    case: &Case,
    placement: &Placement<'_>,
) -> Result<(), NodeError> {
    if let Some(memory) = &case.node.memory {
        node.backend().limit_memory(Some(memory.amount())).await?;
    }
    if !case.node.capacity.is_empty() {
        let capacity = case.node.capacity.iter();
        let capacity = capacity.map(|(name, amount)| (name.clone(), json!(amount.as_str())));
        node.advertise(&capacity.collect()).await?;
    }
    if !case.static_pods.is_empty() {
        let pods: Vec<Value> =
            case.static_pods.iter().map(|pod| static_pod_manifest(pod, placement)).collect();
        node.backend().replace_static_pods(&pods).await?;
    }
    Ok(())
}

/// Deletes the static pods of a case. Their end is not part of the case, so its evidence is read
/// before.
pub(crate) async fn delete_static_pods(node: &Node, case: &Case) -> Result<(), NodeError> {
    if case.static_pods.is_empty() {
        return Ok(());
    }
    node.backend().replace_static_pods(&[]).await
}

/// Returns the size of the unused image that a case puts on its node, in bytes.
pub(crate) fn unused_image_bytes(case: &Case) -> Option<u64> {
    Some(case.node.unused_image.as_ref()?.amount())
}

/// Reverts everything else that a case changes on its node in its setup and steps. Also applies to
/// a case that was interrupted: each reversal is idempotent.
pub(crate) async fn restore_node(node: &Node, case: &Case) -> Result<(), NodeError> {
    if case.node_changes().any(|change| *change == NodeChange::Pause) {
        node.backend().set_paused(false).await?;
    }
    if case.node.memory.is_some() {
        node.backend().limit_memory(None).await?;
    }
    if let Some(bytes) = unused_image_bytes(case) {
        node.backend().remove_unused_image(bytes).await?;
    }
    if case.node_changes().next().is_some() || !case.node.capacity.is_empty() {
        node.clean(case.node_changes().any(|change| *change == NodeChange::Drain)).await?;
    }
    Ok(())
}
