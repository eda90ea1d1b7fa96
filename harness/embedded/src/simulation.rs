//! The cluster as a simulation: nodes, controllers and objects, with their events in order.

use std::time::Duration;

use evictlab_fault::Fault;
use rand_chacha::rand_core::SeedableRng;

use crate::context::SimContext;
use crate::controllers::Controllers;
use crate::fault::{ActiveFaults, FaultEffect, FaultNumber, FaultScope, NodeFault};
use crate::node::Node;
use crate::nodes::Nodes;
use crate::options::{ClusterOptions, OptionsError};
use crate::sim::{Epoch, EventQueue, Rng, Sequence, SimTime, Slot};
use crate::storage::Store;

/// Delay between a change of objects and its delivery to controllers and kubelets, as by watches.
const WATCH_DELAY: Duration = Duration::from_millis(2);

/// Simulation of a cluster.
pub(crate) struct Simulation {
    /// Time up to which all events were handled.
    pub now: SimTime,
    /// Objects of the API.
    pub store: Store,
    /// Nodes by name.
    pub nodes: Nodes,
    /// Faults that are active.
    pub faults: ActiveFaults,
    controllers: Controllers,
    rng: Rng,
    sequence: Sequence,
    queue: EventQueue<Event>,
    /// Version of the store whose delivery is scheduled.
    notified_version: u64,
}

/// Event of the simulation itself.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Controllers and kubelets receive the changes of objects.
    WatchDelivery,
    /// A fault is triggered.
    Fault(FaultNumber),
}

/// Owner of the next event.
enum Owner {
    Simulation,
    Controllers,
    Nodes,
}

impl Simulation {
    /// Creates a cluster: control plane, namespaces and registered nodes.
    ///
    /// # Errors
    /// [`OptionsError`] for nodes with impossible sizes.
    pub(crate) fn new(options: ClusterOptions) -> Result<Self, OptionsError> {
        let defects = options.nodes.iter().flat_map(|node| node.defects.iter()).collect();
        let mut simulation = Self {
            now: SimTime::ZERO,
            store: Store::new(options.seed, Epoch(options.epoch)),
            nodes: Nodes::default(),
            faults: ActiveFaults::default(),
            controllers: Controllers::new(options.event_ttl, defects),
            rng: Rng::seed_from_u64(options.seed),
            sequence: Sequence::default(),
            queue: EventQueue::default(),
            notified_version: 0,
        };
        simulation.inject_faults(&options.faults, &FaultScope::default());
        let nodes = options.nodes.into_iter().map(Node::new).collect::<Result<Vec<_>, _>>()?;
        simulation.with(|controllers, _, ctx| controllers.start(ctx));
        for mut node in nodes {
            simulation.with_context(|ctx| node.start(ctx));
            simulation.nodes.insert(node);
        }
        simulation.run(SimTime::ZERO);
        Ok(simulation)
    }

    /// Handles all events until `now`.
    pub(crate) fn run(&mut self, now: SimTime) {
        self.nodes.requeue();
        self.schedule_watch_delivery();
        while let Some((slot, owner)) = self.first().filter(|(slot, _)| slot.time <= now) {
            self.now = self.now.max(slot.time);
            match owner {
                Owner::Simulation => self.handle_own_event(),
                Owner::Controllers => self.with(|controllers, _, ctx| controllers.handle_next(ctx)),
                Owner::Nodes => self.with(|_, nodes, ctx| nodes.handle_next(ctx)),
            }
        }
        self.now = self.now.max(now);
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Option<SimTime> {
        self.first().map(|(slot, _)| slot.time)
    }

    /// Injects the faults of a script; their times count from now.
    pub(crate) fn inject_faults(&mut self, script: &[Fault], scope: &FaultScope) {
        for (time, number) in self.faults.activate(script, scope, self.now) {
            self.queue.schedule(time, Event::Fault(number), &mut self.sequence);
        }
        self.schedule_watch_delivery();
    }

    /// Runs `work` at the current time, as a request does.
    pub(crate) fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Controllers, &mut Nodes, &mut SimContext) -> T,
    ) -> T {
        let mut ctx = SimContext {
            now: self.now,
            store: &mut self.store,
            rng: &mut self.rng,
            faults: &mut self.faults,
            sequence: &mut self.sequence,
        };
        let result = work(&mut self.controllers, &mut self.nodes, &mut ctx);
        self.nodes.requeue();
        self.schedule_watch_delivery();
        result
    }

    /// Like [`with`](Self::with), for work that needs neither nodes nor controllers.
    pub(crate) fn with_context<T>(&mut self, work: impl FnOnce(&mut SimContext) -> T) -> T {
        self.with(|_, _, ctx| work(ctx))
    }

    /// Returns the slot of the next event, and its owner.
    fn first(&self) -> Option<(Slot, Owner)> {
        let own = self.queue.next().map(|slot| (slot, Owner::Simulation));
        let controllers = self.controllers.next().map(|slot| (slot, Owner::Controllers));
        let nodes = self.nodes.next().map(|slot| (slot, Owner::Nodes));
        [own, controllers, nodes].into_iter().flatten().min_by_key(|(slot, _)| *slot)
    }

    fn handle_own_event(&mut self) {
        match self.queue.pop() {
            Some(Event::WatchDelivery) => self.with(|controllers, nodes, ctx| {
                controllers.handle_changes(ctx);
                nodes.deliver(ctx);
            }),
            Some(Event::Fault(number)) => self.with(|_, nodes, ctx| trigger_fault(number, nodes, ctx)),
            None => {}
        }
    }

    /// Schedules the delivery of changes that were made since the last delivery was scheduled.
    fn schedule_watch_delivery(&mut self) {
        if self.store.version() != self.notified_version {
            self.notified_version = self.store.version();
            self.queue.schedule(self.now + WATCH_DELAY, Event::WatchDelivery, &mut self.sequence);
        }
    }
}

fn trigger_fault(number: FaultNumber, nodes: &mut Nodes, ctx: &mut SimContext) {
    let (fault, node) = match ctx.faults.trigger(number) {
        None => return,
        Some(FaultEffect::EndWatches { end, resource, scope }) => {
            ctx.store.end_watches(end, |kind, namespace| {
                scope.covers_request(namespace, None)
                    && resource.as_deref().is_none_or(|stated| stated == kind.plural())
            });
            return;
        }
        Some(FaultEffect::OnNode(fault, node)) => (fault, node),
    };
    let affected: Vec<String> = match node {
        Some(node) => vec![node],
        None => nodes.names().map(str::to_owned).collect(),
    };
    for name in affected {
        let Some(node) = nodes.get_mut(&name) else { continue };
        match fault {
            NodeFault::OomKill => node.machine.trigger_oom(ctx.now),
            NodeFault::StopKubelet => node.kubelet.stop(),
            NodeFault::StartKubelet => node.kubelet.schedule_start(ctx.now, ctx),
            NodeFault::RestartKubelet => node.kubelet.restart_without_jitter(ctx),
        }
        node.schedule_wakeup(ctx);
    }
}
