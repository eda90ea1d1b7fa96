//! The nodes of a simulation, with an index of their next events.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use crate::context::SimContext;
use crate::node::Node;
use crate::resource::{Kind, ObjectExt};
use crate::sim::Slot;
use crate::storage::ObjectChange;

/// Nodes by name.
///
/// The next event of all nodes is found without a look at every node, and changes of objects are
/// delivered to the nodes that they concern: an event costs the same on a thousand nodes as on one.
#[derive(Default)]
pub(crate) struct Nodes {
    all: Vec<Entry>,
    /// Positions in `all` by name.
    positions: BTreeMap<String, usize>,
    /// Next events with the positions of their nodes, except those of `touched` nodes.
    queue: BTreeSet<(Slot, usize)>,
    /// Positions of nodes whose next event may have moved.
    touched: Vec<usize>,
    /// Positions of nodes that a request or a fault may have changed since the last delivery.
    undelivered: Vec<usize>,
    /// Version of the store up to which changes were delivered.
    delivered: u64,
}

struct Entry {
    node: Node,
    /// Slot of the node in the queue.
    slot: Option<Slot>,
}

impl Nodes {
    /// Adds a node, which replaces a node of the same name.
    pub(crate) fn insert(&mut self, node: Node) {
        let name = node.name.clone();
        match self.positions.get(&name) {
            Some(&position) => {
                self.all[position].node = node;
                self.touch(position);
            }
            None => {
                let position = self.all.len();
                self.all.push(Entry { node, slot: None });
                self.positions.insert(name, position);
                self.touch(position);
            }
        }
    }

    /// Returns a node.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.positions.get(name).map(|position| &self.all[*position].node)
    }

    /// Returns a node for changes.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        let position = *self.positions.get(name)?;
        self.touch(position);
        Some(&mut self.all[position].node)
    }

    /// Returns the names of the nodes, in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.positions.keys().map(String::as_str)
    }

    /// Updates the queue after changes of nodes.
    pub(crate) fn requeue(&mut self) {
        for position in std::mem::take(&mut self.touched) {
            let Entry { node, slot } = &mut self.all[position];
            let next = node.next();
            let last = std::mem::replace(slot, next);
            if last != next {
                last.map(|last| self.queue.remove(&(last, position)));
                self.queue.extend(next.map(|next| (next, position)));
            }
        }
    }

    /// Returns the slot of the next event of all nodes. Changes of nodes count after a call of
    /// [`requeue`](Self::requeue).
    pub(crate) fn next(&self) -> Option<Slot> {
        self.queue.first().map(|(slot, _)| *slot)
    }

    /// Handles the next event.
    pub(crate) fn handle_next(&mut self, ctx: &mut SimContext) {
        if let Some((_, position)) = self.queue.first().copied() {
            self.touched.push(position);
            self.all[position].node.handle_next(ctx);
        }
    }

    /// Delivers the changes of objects since the last call, in the order of the nodes' names. A
    /// node that was not changed, and without a change of its pods, has nothing to do.
    pub(crate) fn deliver(&mut self, ctx: &mut SimContext) {
        let since = std::mem::replace(&mut self.delivered, ctx.store.version());
        let undelivered = std::mem::take(&mut self.undelivered);
        let Ok(changes) = ctx.store.since(since) else {
            for position in self.positions.values() {
                self.touched.push(*position);
                self.all[*position].node.deliver_changes(None, ctx);
            }
            return;
        };
        // Ordered by name.
        let mut concerned: BTreeMap<&str, (usize, Vec<ObjectChange>)> = BTreeMap::new();
        for change in changes.filter(|change| change.kind == Kind::Pod) {
            if let Some((name, position)) = self.positions.get_key_value(change.object.node_name()) {
                let (_, changes) = concerned.entry(name).or_insert((*position, Vec::new()));
                changes.push(change.clone());
            }
        }
        for position in undelivered {
            concerned.entry(&self.all[position].node.name).or_insert((position, Vec::new()));
        }
        let concerned: Vec<_> = concerned.into_values().collect();
        for (position, changes) in concerned {
            self.touched.push(position);
            self.all[position].node.deliver_changes(Some(changes), ctx);
        }
    }

    fn touch(&mut self, position: usize) {
        self.touched.push(position);
        self.undelivered.push(position);
    }
}

impl Index<&str> for Nodes {
    type Output = Node;

    /// # Panics
    /// No node has this name.
    fn index(&self, name: &str) -> &Node {
        &self.all[self.positions[name]].node
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use evictlab_rules::KubeletVersion;
    use serde_json::json;

    use super::*;
    use crate::options::{ClusterOptions, NodeOptions};
    use crate::sim::SimTime;
    use crate::simulation::Simulation;

    fn simulation() -> Simulation {
        let node = |name: &str| NodeOptions::new(name, KubeletVersion::from_minor(33));
        let nodes = ["c", "a", "b"].map(node);
        let options = ClusterOptions::new(1, "2026-01-01T00:00:00Z".parse().unwrap(), nodes.into());
        let mut simulation = Simulation::new(options).unwrap();
        simulation.run(SimTime::from_start(Duration::from_secs(20)));
        simulation
    }

    /// Names of the nodes that were looked at since the last call of `requeue`.
    fn touched(nodes: &Nodes) -> Vec<&str> {
        nodes.touched.iter().map(|position| nodes.all[*position].node.name.as_str()).collect()
    }

    #[test]
    fn the_next_event_is_that_of_the_first_node() {
        let mut simulation = simulation();
        for _ in 0..200 {
            let first = simulation.nodes.all.iter().filter_map(|entry| entry.node.next()).min();
            assert_eq!(simulation.nodes.next(), first);
            simulation.with(|_, nodes, ctx| {
                ctx.now = first.map_or(ctx.now, |slot| slot.time);
                nodes.handle_next(ctx);
                assert_eq!(touched(nodes).len(), 1, "an event costs the same on any number of nodes");
            });
        }
        simulation.nodes.get_mut("b").unwrap().kubelet.stop();
        assert_eq!(touched(&simulation.nodes), ["b"]);
    }

    #[test]
    fn changes_are_delivered_to_the_nodes_that_they_concern() {
        let mut simulation = simulation();
        let pod = |name: &str, node: &str| json!({"metadata": {"namespace": "default", "name": name}, "spec": {"nodeName": node, "containers": []}});
        simulation.with(|_, nodes, ctx| {
            nodes.deliver(ctx);
            nodes.touched.clear();
            nodes.deliver(ctx);
            assert!(touched(nodes).is_empty(), "nothing has changed");
            for (name, node) in
                [("one", "c"), ("two", "a"), ("three", "c"), ("four", "unknown"), ("five", "")]
            {
                ctx.store.create(Kind::Pod, pod(name, node), ctx.now).unwrap();
            }
            nodes.deliver(ctx);
            assert_eq!(touched(nodes), ["a", "c"]);
            let uid = ctx.store.get(Kind::Pod, "default", "three").unwrap().uid().to_owned();
            assert!(nodes["c"].kubelet.pods.active().iter().any(|active| active.pod.metadata.uid == uid));
            nodes.touched.clear();
            // A change that the kubelet is to notice at the next delivery.
            nodes.get_mut("b");
            nodes.touched.clear();
            nodes.deliver(ctx);
            assert_eq!(touched(nodes), ["b"]);
        });
    }
}
