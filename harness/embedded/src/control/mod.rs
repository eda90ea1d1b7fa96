//! The control plane beside the API: the scheduler and the controllers.
//!
//! Each part looks at the changes that concern it ([`Control::changed`]) and asks the agenda for what is to be done later.

mod budgets;
mod events;
mod expiry;
mod garbage;
mod health;
mod namespaces;
mod orphans;
mod scheduler;
mod start;
mod taint_eviction;
mod taints;
#[cfg(test)]
mod tests;
mod workloads;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::agenda::Due;
use crate::node::Node;
use crate::store::{Change, ChangeKind, Kind};
use crate::time::Time;
use crate::world::Ctx;

/// The namespace of what lives in none, and of its events.
const DEFAULT: &str = "default";

/// Something that the control plane has to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControlEvent {
    /// The scheduler looks at the pods without a node.
    Schedule,
    /// A namespace gets what every namespace has.
    Furnish(String),
    /// A namespace that is being deleted is emptied.
    Empty(String),
    /// The node lifecycle controller looks at heartbeats.
    Health,
    /// Events that are old are forgotten.
    Expiry,
    /// Pods are looked for whose node is gone.
    Orphans,
    /// A pod does not tolerate a taint any longer.
    Evict {
        /// The pod's namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A namespace's disruption budgets are computed again.
    Budgets(String),
    /// What an object of a uid owned, which is gone, goes too.
    Collect(String),
    /// What an object owns goes first: its kind, its namespace and name.
    Dependents(Kind, (String, String)),
    /// A deployment, a replica set, a job or one of their pods is looked at.
    Workload(workloads::Key),
}

/// What the control plane remembers.
pub struct Control {
    event_ttl: Duration,
    /// The version of the store up to which changes were looked at.
    seen: u64,
    recorder: events::Recorder,
    health: health::Health,
    orphans: orphans::Orphans,
    taint_eviction: taint_eviction::TaintEviction,
    scheduler: scheduler::Scheduler,
    workloads: workloads::Workloads,
}

impl Control {
    /// One that keeps events for so long.
    pub fn new(event_ttl: Duration) -> Self {
        Self {
            event_ttl,
            seen: 0,
            recorder: Default::default(),
            health: Default::default(),
            orphans: Default::default(),
            taint_eviction: Default::default(),
            scheduler: Default::default(),
            workloads: Default::default(),
        }
    }

    /// Makes what every cluster has from its beginning: namespaces and priority classes. (No service `default/kubernetes`: services are
    /// not served.)
    pub fn start(&mut self, ctx: &mut Ctx) {
        start::start(ctx);
        self.health.start(ctx);
        expiry::start(ctx);
        self.seen = ctx.store.version();
    }

    /// Objects have changed.
    pub fn changed(&mut self, ctx: &mut Ctx) {
        let changes = self.changes(ctx);
        for change in &changes {
            match change.kind {
                Kind::Namespace | Kind::ServiceAccount | Kind::ConfigMap => namespaces::changed(change, ctx),
                Kind::Node => {
                    taints::changed(change, ctx);
                    self.taint_eviction.node_changed(change, &mut self.recorder, ctx);
                    self.orphans.node_changed(change, ctx);
                }
                Kind::Pod => {
                    namespaces::changed(change, ctx);
                    self.taint_eviction.pod_changed(change, &mut self.recorder, ctx);
                    self.orphans.pod_changed(change, ctx);
                }
                Kind::PodDisruptionBudget
                | Kind::Event
                | Kind::PriorityClass
                | Kind::Lease
                | Kind::Deployment
                | Kind::ReplicaSet
                | Kind::Job => {}
            }
            self.workloads.changed(change, ctx);
            garbage::changed(change, ctx);
        }
        budgets::changed(&changes, &mut self.recorder, ctx);
        self.scheduler.changed(&changes, ctx);
    }

    /// Something is due.
    pub fn on(&mut self, event: ControlEvent, _nodes: &mut BTreeMap<String, Node>, ctx: &mut Ctx) {
        match event {
            ControlEvent::Schedule => self.scheduler.run(&mut self.recorder, ctx),
            ControlEvent::Furnish(namespace) => namespaces::furnish(&namespace, ctx),
            ControlEvent::Empty(namespace) => namespaces::empty(&namespace, ctx),
            ControlEvent::Health => self.health.look(&mut self.recorder, ctx),
            ControlEvent::Expiry => expiry::look(self.event_ttl, ctx),
            ControlEvent::Orphans => self.orphans.look(ctx),
            ControlEvent::Evict { namespace, name } => {
                self.taint_eviction.due(&namespace, &name, &mut self.recorder, ctx);
            }
            ControlEvent::Budgets(namespace) => budgets::compute(&namespace, &mut self.recorder, ctx),
            ControlEvent::Collect(uid) => garbage::collect(&uid, ctx),
            ControlEvent::Dependents(kind, place) => garbage::dependents_first(kind, &place, ctx),
            ControlEvent::Workload(key) => self.workloads.due(&key, &mut self.recorder, ctx),
        }
    }

    /// What has changed since the last look. If too much has, everything is taken as new.
    fn changes(&mut self, ctx: &mut Ctx) -> Vec<Change> {
        let concerns = |kind: Kind| !matches!(kind, Kind::Event | Kind::Lease);
        let seen = std::mem::replace(&mut self.seen, ctx.store.version());
        match ctx.store.since(seen) {
            Ok(changes) => changes.filter(|change| concerns(change.kind)).cloned().collect(),
            Err(_) => {
                let kinds = Kind::ALL.into_iter().filter(|kind| concerns(*kind));
                let all = kinds.flat_map(|kind| ctx.store.list(kind, None).map(move |object| (kind, object)));
                let version = self.seen;
                all.map(|(kind, object)| Change {
                    version,
                    what: ChangeKind::Added,
                    kind,
                    object: object.clone(),
                    before: None,
                })
                .collect()
            }
        }
    }
}

/// Asks for something to be done after a while.
fn after(ctx: &mut Ctx, wait: Duration, event: ControlEvent) {
    at(ctx, ctx.now + wait, event);
}

/// Asks for something to be done at a time.
fn at(ctx: &mut Ctx, time: Time, event: ControlEvent) {
    ctx.agenda.at(time, Due::Control(event));
}

/// A text of an object's metadata; empty if there is none.
fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The node that a pod is bound to; empty if it is to none.
fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// Whether a pod has ended, so that it holds nothing any more.
fn has_ended(pod: &Value) -> bool {
    ["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default())
}

/// The generation that a condition of a pod tells: since 1.34, where pods have one (KEP-5067).
fn generation(pod: &Value, ctx: &Ctx) -> Option<i64> {
    let told = crate::registry::control_plane(ctx).at_least(34);
    pod["metadata"]["generation"].as_i64().filter(|_| told)
}
