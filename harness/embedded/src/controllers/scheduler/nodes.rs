//! Resources of nodes, and requests of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;
use serde_json::Value;

use crate::context::SimContext;
use crate::resource::scheduling::NodeConstraints;
use crate::resource::{Kind, ObjectExt};

/// `schedulerName` of the pods that the scheduler handles.
pub(super) const NAME: &str = "default-scheduler";

/// Requests of a pod, by resource.
pub(super) type PodRequests = BTreeMap<String, Quantity>;

fn requests_of(pod: &Value) -> PodRequests {
    let pod = Pod::deserialize(pod).unwrap_or_default();
    let spec = &pod.spec;
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let names = containers.flat_map(|container| container.resources.requests.keys());
    let names = names.chain(spec.resources.iter().flat_map(|resources| resources.requests.keys()));
    let names = names.chain(spec.overhead.keys());
    names.map(|name| (name.clone(), pod.scheduling_request(name))).collect()
}

/// Pod to schedule.
#[derive(Debug)]
pub(super) struct PendingPod<'a> {
    pub(super) object: &'a Value,
    pub(super) requests: PodRequests,
    pub(super) constraints: NodeConstraints,
}

impl<'a> PendingPod<'a> {
    pub(super) fn read(object: &'a Value) -> Self {
        Self { object, requests: requests_of(object), constraints: NodeConstraints::of(object) }
    }
}

/// Pod on a node, with its requests.
#[derive(Clone, Debug)]
pub(super) struct PodInfo {
    pub(super) pod: Arc<Value>,
    pub(super) requests: PodRequests,
}

/// Node with its pods.
#[derive(Clone, Debug)]
pub(super) struct NodeInfo {
    pub(super) name: String,
    pub(super) node: Arc<Value>,
    pub(super) taints: Vec<Taint>,
    /// `status.allocatable`, by resource.
    pub(super) allocatable: BTreeMap<String, Quantity>,
    /// Pods that are bound or nominated to the node.
    pub(super) pods: Vec<PodInfo>,
}

impl NodeInfo {
    /// Returns the sum of the pods' requests of a resource.
    pub(super) fn taken(&self, resource: &str) -> Quantity {
        let amounts = self.pods.iter().filter_map(|pod_info| pod_info.requests.get(resource));
        amounts.fold(Quantity::ZERO, |sum, amount| sum + amount)
    }
}

/// Reads the nodes for a pod, by name. Pods that are nominated to a node count there if their
/// priority is at least the pod's.
pub(super) fn read_nodes(ctx: &SimContext, pod: &Value) -> Vec<NodeInfo> {
    let nodes = ctx.store.list(Kind::Node, None).map(|node| NodeInfo {
        name: node.name().to_owned(),
        node: node.clone(),
        taints: node.taints(),
        allocatable: node.status().read("allocatable"),
        pods: Vec::new(),
    });
    let mut nodes: Vec<NodeInfo> = nodes.collect();
    for other in ctx.store.list(Kind::Pod, None).filter(|other| !other.is_terminal()) {
        let place = match (other.node_name(), other.nominated_node()) {
            ("", node) if other.priority() >= pod.priority() && other.uid() != pod.uid() => node,
            (node, _) => node,
        };
        // The nodes are listed by name.
        if let Ok(position) = nodes.binary_search_by(|node_info| node_info.name.as_str().cmp(place)) {
            nodes[position].pods.push(PodInfo { pod: other.clone(), requests: requests_of(other) });
        }
    }
    nodes
}
