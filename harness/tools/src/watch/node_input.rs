//! Observed state of a node.

use evictlab_rules::threshold::Signal;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as ApiNode;

use super::bounded_set::BoundedSet;
use super::kubelet_client::{KubeletSnapshot, QueryError};
use super::pod_fields::WatchedPod;

/// Objects of the API server and state of the kubelet, from which the view of a node is computed.
pub(super) struct NodeInput<'a> {
    pub node: &'a ApiNode,
    /// Pods bound to the node.
    pub pods: &'a [WatchedPod],
    pub snapshot: Result<&'a KubeletSnapshot, &'a QueryError>,
    pub signal: Signal,
    /// UIDs of pods that are being evicted.
    pub evicted: &'a BoundedSet<String>,
    pub at: Timestamp,
}
