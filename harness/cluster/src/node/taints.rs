//! Taints of nodes.

use k8s_openapi::api::core::v1::{Node as ApiNode, Taint};

/// Start of the keys of the taints by which Kubernetes shows the state of a node.
pub(crate) const SYSTEM_TAINT_PREFIX: &str = "node.kubernetes.io/";
/// Key of the taint of a cordoned node.
pub const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// Returns the taints of a node.
pub fn taints(node: &ApiNode) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

/// Returns the keys of the taints by which Kubernetes shows the state of a node.
pub fn system_taints(node: &ApiNode) -> Vec<String> {
    taints(node).map(|taint| taint.key.clone()).filter(|key| key.starts_with(SYSTEM_TAINT_PREFIX)).collect()
}
