//! State that controllers share, and their tasks.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;

use super::recorder::{EventObjects, Recorder};
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::{EventQueue, SimTime};

/// Task of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControllerTask {
    /// Tries pods without a node (scheduler).
    Schedule,
    /// Creates the default objects of a namespace.
    CreateDefaults(String),
    /// Deletes the objects of a namespace that is being deleted.
    EmptyNamespace(String),
    /// Checks the heartbeats of the nodes (node lifecycle controller).
    CheckHeartbeats,
    /// Deletes old events.
    DeleteOldEvents,
    /// Deletes a pod whose toleration of a taint has ended.
    EvictTainted {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
    },
    /// Updates the disruption budgets of a namespace.
    UpdateBudgets(String),
    /// Deletes the dependents of a missing owner, by its uid.
    DeleteOrphans(String),
    /// Deletes the dependents of an object that waits for them.
    DeleteDependents {
        /// Kind of the object.
        kind: Kind,
        /// Namespace of the object.
        namespace: String,
        /// Name of the object.
        name: String,
    },
    /// Reconciles an object of a workload controller.
    Reconcile(WorkloadKey),
}

/// Object of a workload controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkloadKey {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The simulation, the queue of the controllers and the recorder of their events.
pub(super) struct ControllerContext<'c, 'a> {
    pub(super) sim: &'c mut SimContext<'a>,
    pub(super) queue: &'c mut EventQueue<ControllerTask>,
    pub(super) recorder: &'c mut Recorder,
}

impl ControllerContext<'_, '_> {
    /// Schedules a task after a delay.
    pub(super) fn schedule_after(&mut self, delay: Duration, task: ControllerTask) {
        self.schedule_at(self.sim.now + delay, task);
    }

    /// Schedules a task at a time.
    pub(super) fn schedule_at(&mut self, time: SimTime, task: ControllerTask) {
        self.queue.schedule(time, task, self.sim.sequence);
    }

    /// Records a Kubernetes event of a controller.
    pub(super) fn record(&mut self, component: &'static str, object: ObjectReference, event: EventBody) {
        self.recorder.record(self.sim, component, object, event);
    }

    /// Records a Kubernetes event of the scheduler.
    pub(super) fn record_series(&mut self, objects: EventObjects, action: &str, event: EventBody) {
        self.recorder.record_series(self.sim, objects, action, event);
    }
}

impl<'a> Deref for ControllerContext<'_, 'a> {
    type Target = SimContext<'a>;

    fn deref(&self) -> &SimContext<'a> {
        self.sim
    }
}

impl<'a> DerefMut for ControllerContext<'_, 'a> {
    fn deref_mut(&mut self) -> &mut SimContext<'a> {
        self.sim
    }
}

/// Returns the observed generation that controllers report in a pod's conditions, since 1.34
/// (`PodObservedGenerationTracking`, KEP-5067).
pub(super) fn observed_generation(pod: &Value, ctx: &SimContext) -> Option<i64> {
    let reports = control_plane_version(ctx).at_least(34);
    pod.generation().filter(|_| reports)
}
