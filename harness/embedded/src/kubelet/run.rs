//! Start, stop and events of a kubelet.

use super::config::KubeletConfig;
use super::event::KubeletEvent;
use super::eviction::Eviction;
use super::log::Log;
use super::pods::Pods;
use super::recorder::Recorder;
use super::state::Kubelet;
use super::stats::Stats;
use super::status::NodeStatusUpdates;
use crate::context::SimContext;
use crate::machine::{Machine, MachineEvent};
use crate::options::NodeOptions;
use crate::sim::{EventQueue, SimTime};
use crate::storage::ObjectChange;

impl Kubelet {
    /// Creates a stopped kubelet.
    pub(crate) fn new(options: NodeOptions) -> Self {
        Self {
            pid: 1000,
            config: KubeletConfig::new(&options),
            running: false,
            started: SimTime::default(),
            log: Log::default(),
            recorder: Recorder::default(),
            pods: Pods::default(),
            stats: Stats::default(),
            eviction: Eviction::default(),
            status: NodeStatusUpdates::new(&options.version),
            queue: EventQueue::default(),
            options,
        }
    }

    /// Starts, unless the configuration is rejected. Running containers are kept; all other state
    /// is lost.
    pub(crate) fn start(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        self.running = true;
        self.started = ctx.now;
        self.pid += 7;
        self.recorder = Recorder::default();
        self.stats = Stats::default();
        self.eviction = Eviction::default();
        if !self.load_config(ctx) {
            return;
        }
        self.status_start(machine, ctx);
        self.pods_start(machine, ctx);
        self.stats_start(ctx);
        self.eviction_start(machine, ctx);
    }

    /// Stops, as by SIGTERM; containers keep running.
    pub fn stop(&mut self) {
        self.running = false;
    }

    /// Delivers changes of the node's pods; `None` if the history is too short.
    pub(crate) fn handle_changes(
        &mut self,
        changes: Option<Vec<ObjectChange>>,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        if self.running {
            self.handle_pod_changes(changes, machine, ctx);
        }
    }

    /// Handles an event of the machine.
    pub(crate) fn handle_machine_event(
        &mut self,
        event: MachineEvent,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        match event {
            MachineEvent::ThresholdCrossed { group, threshold: mark, .. } => {
                if self.running {
                    self.eviction_crossed(&group, mark, ctx);
                }
            }
            event => self.pods_machine_event(event, machine, ctx),
        }
    }

    /// Handles the next event.
    pub(crate) fn handle_next(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        match self.queue.pop() {
            Some(KubeletEvent::Start) => self.start(machine, ctx),
            None => {}
            Some(_) if !self.running => {}
            Some(KubeletEvent::Pods(event)) => self.handle_pod_event(event, machine, ctx),
            Some(KubeletEvent::Stats(event)) => self.handle_stats_event(event, machine, ctx),
            Some(KubeletEvent::Eviction(event)) => self.handle_eviction_event(event, machine, ctx),
            Some(KubeletEvent::Status(event)) => self.handle_status_event(event, machine, ctx),
            Some(KubeletEvent::Recorder(event)) => self.deliver_event(*event, ctx),
        }
    }
}
