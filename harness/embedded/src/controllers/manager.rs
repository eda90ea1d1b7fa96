//! The controllers and their queue.

use std::time::Duration;

use super::context::{ControllerContext, ControllerTask};
use super::node_lifecycle::NodeLifecycle;
use super::recorder::Recorder;
use super::scheduler::Scheduler;
use super::taint_eviction::TaintEviction;
use super::workloads::Workloads;
use super::{bootstrap, disruption, event_ttl, garbage_collector, namespaces, taints};
use crate::context::SimContext;
use crate::defect::Defects;
use crate::resource::Kind;
use crate::sim::{EventQueue, Slot};
use crate::storage::{ObjectChange, WatchEventType};

/// State of the control plane.
pub(crate) struct Controllers {
    event_ttl: Duration,
    /// Defects of the kubelets, as far as they show in the control plane: those of taints.
    defects: Defects,
    /// Version of the store up to which changes were handled.
    seen: u64,
    queue: EventQueue<ControllerTask>,
    recorder: Recorder,
    node_lifecycle: NodeLifecycle,
    taint_eviction: TaintEviction,
    scheduler: Scheduler,
    workloads: Workloads,
}

impl Controllers {
    /// Creates a control plane that keeps events for `event_ttl`.
    pub(crate) fn new(event_ttl: Duration, defects: Defects) -> Self {
        Self {
            event_ttl,
            defects,
            seen: 0,
            queue: EventQueue::default(),
            recorder: Recorder::default(),
            node_lifecycle: NodeLifecycle::default(),
            taint_eviction: TaintEviction::default(),
            scheduler: Scheduler::default(),
            workloads: Workloads::default(),
        }
    }

    /// Creates the initial objects of a cluster. The service `default/kubernetes` is missing:
    /// services are not modelled.
    pub(crate) fn start(&mut self, ctx: &mut SimContext) {
        let ctx = &mut ControllerContext { sim: ctx, queue: &mut self.queue, recorder: &mut self.recorder };
        bootstrap::start(ctx);
        self.node_lifecycle.start(ctx);
        event_ttl::start(ctx);
        self.seen = ctx.store.version();
    }

    /// Delivers changes of objects to the controllers.
    pub(crate) fn handle_changes(&mut self, ctx: &mut SimContext) {
        let changes = self.changes(ctx);
        let ctx = &mut ControllerContext { sim: ctx, queue: &mut self.queue, recorder: &mut self.recorder };
        for change in &changes {
            match change.kind {
                Kind::Namespace | Kind::ServiceAccount | Kind::ConfigMap => {
                    namespaces::handle_change(change, ctx)
                }
                Kind::Node => {
                    taints::handle_change(change, &self.defects, ctx);
                    self.taint_eviction.node_changed(change, ctx);
                }
                Kind::Pod => {
                    namespaces::handle_change(change, ctx);
                    self.taint_eviction.pod_changed(change, ctx);
                }
                Kind::PodDisruptionBudget
                | Kind::Event
                | Kind::PriorityClass
                | Kind::RuntimeClass
                | Kind::Lease
                | Kind::ResourceQuota
                | Kind::Deployment
                | Kind::ReplicaSet
                | Kind::Job => {}
            }
            self.workloads.handle_change(change, ctx);
            garbage_collector::handle_change(change, ctx);
        }
        disruption::handle_changes(&changes, ctx);
        self.scheduler.handle_changes(&changes, ctx);
    }

    /// Returns the slot of the next event.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.queue.next()
    }

    /// Runs the next task.
    pub(crate) fn handle_next(&mut self, ctx: &mut SimContext) {
        let Some(task) = self.queue.pop() else { return };
        let ctx = &mut ControllerContext { sim: ctx, queue: &mut self.queue, recorder: &mut self.recorder };
        match task {
            ControllerTask::Schedule => self.scheduler.run(ctx),
            ControllerTask::CreateDefaults(namespace) => namespaces::create_defaults(&namespace, ctx),
            ControllerTask::EmptyNamespace(namespace) => namespaces::empty(&namespace, ctx),
            ControllerTask::CheckHeartbeats => self.node_lifecycle.check(ctx),
            ControllerTask::DeleteOldEvents => event_ttl::check(self.event_ttl, ctx),
            ControllerTask::EvictTainted { namespace, name } => {
                self.taint_eviction.delete_due(&namespace, &name, ctx);
            }
            ControllerTask::UpdateBudgets(namespace) => disruption::compute(&namespace, ctx),
            ControllerTask::DeleteOrphans(uid) => garbage_collector::collect(&uid, ctx),
            ControllerTask::DeleteDependents { kind, namespace, name } => {
                garbage_collector::collect_dependents(kind, &(namespace, name), ctx);
            }
            ControllerTask::Reconcile(key) => self.workloads.reconcile_due(&key, ctx),
        }
    }

    /// Returns the changes since the last call. If the history is too short, all objects count as
    /// added.
    fn changes(&mut self, ctx: &SimContext) -> Vec<ObjectChange> {
        let is_watched = |kind: Kind| !matches!(kind, Kind::Event | Kind::Lease);
        let seen = std::mem::replace(&mut self.seen, ctx.store.version());
        match ctx.store.since(seen) {
            Ok(changes) => changes.filter(|change| is_watched(change.kind)).cloned().collect(),
            Err(_) => {
                let kinds = Kind::ALL.into_iter().filter(|kind| is_watched(*kind));
                let all = kinds.flat_map(|kind| ctx.store.list(kind, None).map(move |object| (kind, object)));
                let version = self.seen;
                all.map(|(kind, object)| ObjectChange {
                    version,
                    event_type: WatchEventType::Added,
                    kind,
                    object: object.clone(),
                    before: None,
                })
                .collect()
            }
        }
    }
}
