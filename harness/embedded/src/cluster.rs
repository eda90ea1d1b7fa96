//! The simulation on Tokio's clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evictlab_fault::Fault;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::context::SimContext;
use crate::fault::FaultScope;
use crate::node::Node;
use crate::options::{ClusterOptions, OptionsError};
use crate::sim::SimTime;
use crate::simulation::Simulation;

/// Handle of a cluster. Its time is Tokio's: with a paused clock it advances as fast as the work
/// allows, otherwise with the wall clock.
#[derive(Clone)]
pub struct Cluster {
    simulation: Arc<Mutex<Simulation>>,
    started: Instant,
    /// Notified when the next event may have moved.
    rescheduled: Arc<Notify>,
}

impl Cluster {
    /// Creates a cluster that starts now.
    ///
    /// # Errors
    /// [`OptionsError`] for nodes with impossible sizes.
    pub fn new(options: ClusterOptions) -> Result<Self, OptionsError> {
        Ok(Self {
            simulation: Arc::new(Mutex::new(Simulation::new(options)?)),
            started: Instant::now(),
            rescheduled: Arc::new(Notify::new()),
        })
    }

    /// Returns the time since the start.
    pub fn now(&self) -> SimTime {
        SimTime::from_start(self.started.elapsed())
    }

    /// Runs `work` on a node at the current time; returns `None` if the cluster does not have the
    /// node.
    pub fn with_node<T>(&self, name: &str, work: impl FnOnce(&mut Node, &mut SimContext) -> T) -> Option<T> {
        self.with(|simulation| {
            simulation.with(|_, nodes, ctx| nodes.get_mut(name).map(|node| work(node, ctx)))
        })
    }

    /// Injects the faults of a script; their times count from now.
    pub fn inject_faults(&self, script: &[Fault], scope: &FaultScope) {
        self.with(|simulation| simulation.inject_faults(script, scope));
    }

    /// Ends the faults whose scope names a node, also those that have not begun.
    pub fn end_faults(&self, node: &str) {
        self.with(|simulation| simulation.faults.end_on_node(node));
    }

    /// Runs `work` on the simulation at the current time.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Simulation) -> T) -> T {
        let mut simulation = self.lock();
        simulation.run(self.now());
        let result = work(&mut simulation);
        drop(simulation);
        self.rescheduled.notify_one();
        result
    }

    /// Advances the simulation for as long as the future is polled. Between polls, only requests
    /// advance it.
    pub async fn drive(&self) {
        loop {
            let next = {
                let mut simulation = self.lock();
                simulation.run(self.now());
                simulation.next()
            };
            let rescheduled = self.rescheduled.notified();
            match next {
                Some(next) => {
                    tokio::select! {
                        biased;
                        () = sleep_until(self.started + next.since_start()) => {}
                        () = rescheduled => {}
                    }
                }
                None => rescheduled.await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Simulation> {
        // The panic that poisoned the lock is reported elsewhere; requests continue with the
        // current state.
        self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
