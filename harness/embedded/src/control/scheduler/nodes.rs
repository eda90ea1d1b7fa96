//! What nodes have, and what is taken of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

use super::super::{has_ended, meta, node_of};
use super::priority;
use crate::registry::pod::defaults::aggregate;
use crate::store::Kind;
use crate::world::Ctx;

/// What a pod asks for, by resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted(pub(super) BTreeMap<String, Quantity>);

impl Wanted {
    /// As `resourcehelper.PodRequests` computes it: the pod's own requests, else those of its containers with sidecars beside them; overhead.
    pub(super) fn of(pod: &Value) -> Self {
        let Ok(pod) = Pod::deserialize(pod) else { return Self::default() };
        let spec = &pod.spec;
        let containers = spec.containers.iter().chain(&spec.init_containers);
        let own = spec.resources.as_ref().map(|resources| &resources.requests);
        let names = containers
            .flat_map(|container| container.resources.requests.keys())
            .chain(own.into_iter().flat_map(BTreeMap::keys))
            .chain(spec.overhead.keys());
        let mut wanted = BTreeMap::new();
        for name in names {
            if wanted.contains_key(name) {
                continue;
            }
            let stated = own.and_then(|own| own.get(name)).filter(|_| pod.has_pod_level_resources());
            let mut amount = stated.cloned().unwrap_or_else(|| aggregate(&pod, name));
            if let Some(overhead) = spec.overhead.get(name) {
                amount = amount + overhead;
            }
            wanted.insert(name.clone(), amount);
        }
        Self(wanted)
    }
}

/// A pod on a node.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) pod: Arc<Value>,
    pub(super) wanted: Wanted,
}

/// A node with its pods.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) name: String,
    pub(super) node: Arc<Value>,
    /// `status.allocatable`, by resource.
    pub(super) allocatable: BTreeMap<String, Quantity>,
    /// Those that run there, and those that are to.
    pub(super) pods: Vec<Held>,
}

impl Room {
    /// What the pods here ask for of a resource.
    pub(super) fn taken(&self, resource: &str) -> Quantity {
        let amounts = self.pods.iter().filter_map(|held| held.wanted.0.get(resource));
        amounts.fold(Quantity::ZERO, |sum, amount| sum + amount)
    }
}

/// All nodes, by name.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) all: Vec<Room>,
}

impl Nodes {
    /// As a pod finds them: pods that are nominated to a node count there if they are of its priority or a higher one.
    pub(super) fn read(ctx: &Ctx, pod: &Value) -> Self {
        let all = ctx.store.list(Kind::Node, None).map(|node| Room {
            name: meta(node, "name").to_owned(),
            node: node.clone(),
            allocatable: BTreeMap::deserialize(&node["status"]["allocatable"]).unwrap_or_default(),
            pods: Vec::new(),
        });
        let mut nodes = Self { all: all.collect() };
        for other in ctx.store.list(Kind::Pod, None).filter(|other| !has_ended(other)) {
            let place = match (node_of(other), nominated(other)) {
                ("", node) if priority(other) >= priority(pod) && meta(other, "uid") != meta(pod, "uid") => {
                    node
                }
                (node, _) => node,
            };
            if let Some(room) = nodes.all.iter_mut().find(|room| room.name == place) {
                room.pods.push(Held { pod: other.clone(), wanted: Wanted::of(other) });
            }
        }
        nodes
    }
}

/// The node for which a pod has made room; empty if none.
pub(super) fn nominated(pod: &Value) -> &str {
    pod["status"]["nominatedNodeName"].as_str().unwrap_or_default()
}
