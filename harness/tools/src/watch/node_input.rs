//! Observed state of a node.

use std::collections::BTreeSet;

use evictlab_rules::threshold::Signal;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod as ApiPod};
use kube::ResourceExt;

use super::kubelet_client::{KubeletSnapshot, QueryError};

/// Objects of the API server and state of the kubelet, from which the view of a node is computed.
pub(super) struct NodeInput<'a> {
    pub node: &'a ApiNode,
    /// Pods bound to the node.
    pub pods: &'a [&'a ApiPod],
    pub snapshot: Result<&'a KubeletSnapshot, &'a QueryError>,
    pub signal: Signal,
    /// UIDs of pods that are being evicted.
    pub evicted: &'a BTreeSet<String>,
    pub at: Timestamp,
}

/// Returns the pods bound to a node.
pub(super) fn pods_on<'a>(node: &ApiNode, pods: &[&'a ApiPod]) -> Vec<&'a ApiPod> {
    let name = node.name_any();
    let is_bound = |pod: &&&ApiPod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some_and(|node| *node == name)
    };
    pods.iter().filter(is_bound).copied().collect()
}
