//! Changes of a node that a case states, and their reversal.

use evictlab_case::{Case, NodeChange, NodeSetup, case_name};
use evictlab_cluster::workload::{Placement, static_pod_manifest};
use evictlab_cluster::{Node, NodeError, NodeReversal};
use serde_json::{Map, Value, json};

/// Applies a case's memory limit, extended resources and static pods to its node.
pub(crate) async fn set_up_node(
    node: &Node,
    case: &Case,
    placement: &Placement<'_>,
) -> Result<(), NodeError> {
    // The runner checks huge pages and swap before, and makes the rest before the configuration.
    let NodeSetup { memory, huge_pages: _, swap: _, capacity, unused_image: _, file_systems: _ } = &case.node;
    if let Some(memory) = memory {
        node.backend().limit_memory(Some(memory.amount())).await?;
    }
    if !capacity.is_empty() {
        let capacity = capacity.iter().map(|(name, amount)| (name.clone(), json!(amount.as_str())));
        node.advertise(&capacity.collect()).await?;
    }
    if case.all_static_pods().next().is_some() {
        node.backend().delete_static_pods().await?;
    }
    for pod in &case.static_pods {
        create_static_pod(node, pod, placement).await?;
    }
    Ok(())
}

/// Creates a static pod of a case on its node.
pub(crate) async fn create_static_pod(
    node: &Node,
    pod: &Map<String, Value>,
    placement: &Placement<'_>,
) -> Result<(), NodeError> {
    let name = case_name(pod).unwrap_or_default();
    node.backend().create_static_pod(name, &static_pod_manifest(pod, placement)).await
}

/// Returns the size of the unused image that a case puts on its node, in bytes.
pub(crate) fn unused_image_bytes(case: &Case) -> Option<u64> {
    Some(case.node.unused_image.as_ref()?.amount())
}

/// Returns the reversal of everything that a case changes on its node in its setup and steps,
/// except the kubelet configuration and file systems. Also applies to a case that was interrupted.
pub(crate) fn reversal(case: &Case) -> NodeReversal {
    let NodeSetup { memory, huge_pages: _, swap: _, capacity, unused_image, file_systems: _ } = &case.node;
    let changes = |wanted: NodeChange| case.node_changes().any(|change| *change == wanted);
    NodeReversal {
        paused: changes(NodeChange::Pause),
        memory_limit: memory.is_some(),
        static_pods: case.all_static_pods().next().is_some(),
        taints_and_resources: case.node_changes().next().is_some() || !capacity.is_empty(),
        cordon: changes(NodeChange::Drain),
        unused_images: unused_image.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverts_what_a_case_changes() {
        let of = |fields: &str| {
            let text = format!("{{name: a, about: b, expect: {{evicted: []}}, {fields}}}");
            reversal(&serde_saphyr::from_str::<Case>(&text).unwrap())
        };
        let none = NodeReversal::default();
        let taints = NodeReversal { taints_and_resources: true, ..none };
        assert_eq!(of("pods: []"), none);
        assert_eq!(of("node: {memory: 1Gi}"), NodeReversal { memory_limit: true, ..none });
        assert_eq!(of("node: {unused-image: 1Gi}"), NodeReversal { unused_images: true, ..none });
        assert_eq!(of("node: {capacity: {evictlab.dev/gpu: 1}}"), taints);
        assert_eq!(of("static-pods: [{spec: {}}]"), NodeReversal { static_pods: true, ..none });
        let static_pods = NodeReversal { static_pods: true, ..taints };
        assert_eq!(of("do: [{create-static-pod: {spec: {}}}]"), static_pods);
        assert_eq!(of("do: [{pause: true}]"), NodeReversal { paused: true, ..taints });
        assert_eq!(of("do: [{drain: true}]"), NodeReversal { cordon: true, ..taints });
    }
}
