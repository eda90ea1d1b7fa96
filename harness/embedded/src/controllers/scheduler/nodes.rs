//! Resources of nodes, and requests of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;
use serde_json::Value;

use crate::apiserver::container_requests;
use crate::context::SimContext;
use crate::resource::scheduling::NodeConstraints;
use crate::resource::{Kind, ObjectExt};

/// `schedulerName` of the pods that the scheduler handles.
pub(super) const NAME: &str = "default-scheduler";

/// Requests of a pod, by resource.
#[derive(Clone, Debug, Default)]
pub(super) struct PodRequests(pub(super) BTreeMap<String, Quantity>);

impl PodRequests {
    /// Computes the requests as `resourcehelper.PodRequests` does: pod-level requests, or those of
    /// the containers with sidecars, plus overhead.
    pub(super) fn of(pod: &Value) -> Self {
        let Ok(pod) = Pod::deserialize(pod) else { return Self::default() };
        let spec = &pod.spec;
        let containers = spec.containers.iter().chain(&spec.init_containers);
        let own = spec.resources.as_ref().map(|resources| &resources.requests);
        let names = containers
            .flat_map(|container| container.resources.requests.keys())
            .chain(own.into_iter().flat_map(BTreeMap::keys))
            .chain(spec.overhead.keys());
        let mut requests = BTreeMap::new();
        for name in names {
            if requests.contains_key(name) {
                continue;
            }
            let stated = own.and_then(|own| own.get(name)).filter(|_| pod.has_pod_level_resources());
            let mut amount = stated.cloned().unwrap_or_else(|| container_requests(&pod, name));
            if let Some(overhead) = spec.overhead.get(name) {
                amount = amount + overhead;
            }
            requests.insert(name.clone(), amount);
        }
        Self(requests)
    }
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
        Self { object, requests: PodRequests::of(object), constraints: NodeConstraints::of(object) }
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
        let amounts = self.pods.iter().filter_map(|pod_info| pod_info.requests.0.get(resource));
        amounts.fold(Quantity::ZERO, |sum, amount| sum + amount)
    }
}

/// Nodes by name.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) all: Vec<NodeInfo>,
}

impl Nodes {
    /// Reads the nodes for a pod. Pods that are nominated to a node count there if their priority
    /// is at least the pod's.
    pub(super) fn read(ctx: &SimContext, pod: &Value) -> Self {
        let all = ctx.store.list(Kind::Node, None).map(|node| NodeInfo {
            name: node.name().to_owned(),
            node: node.clone(),
            taints: node.taints(),
            allocatable: node.status().read("allocatable"),
            pods: Vec::new(),
        });
        let mut nodes = Self { all: all.collect() };
        for other in ctx.store.list(Kind::Pod, None).filter(|other| !other.is_terminal()) {
            let place = match (other.node_name(), other.nominated_node()) {
                ("", node) if other.priority() >= pod.priority() && other.uid() != pod.uid() => node,
                (node, _) => node,
            };
            // The nodes are listed by name.
            if let Ok(position) = nodes.all.binary_search_by(|node_info| node_info.name.as_str().cmp(place)) {
                nodes.all[position]
                    .pods
                    .push(PodInfo { pod: other.clone(), requests: PodRequests::of(other) });
            }
        }
        nodes
    }
}
