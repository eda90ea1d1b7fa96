//! Context and events of the controllers.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;

use super::recorder::{Recorder, Related};
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::{EventQueue, Time};

/// Work of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControllerEvent {
    /// The scheduler tries pods without a node.
    Schedule,
    /// A namespace gets its default objects.
    CreateDefaults(String),
    /// A namespace that is being deleted is emptied.
    EmptyNamespace(String),
    /// The node lifecycle controller checks heartbeats.
    NodeLifecycle,
    /// Old events are removed.
    EventTtl,
    /// A pod's toleration of a taint ends.
    TaintEviction {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
    },
    /// The disruption budgets of a namespace are updated.
    Disruption(String),
    /// The dependents of a missing owner, by its uid, are deleted.
    Collect(String),
    /// The dependents of an object that waits for them are deleted: kind, namespace and name.
    CollectDependents(Kind, (String, String)),
    /// A workload controller reconciles an object.
    Workload(WorkloadKey),
}

/// Object of a workload controller. A pod has its own key when its job no longer wants the pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkloadKey {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The simulation, the queue of the controllers and the recorder of their events.
pub(super) struct ControllerContext<'c, 'a> {
    pub(super) sim: &'c mut SimContext<'a>,
    pub(super) queue: &'c mut EventQueue<ControllerEvent>,
    pub(super) recorder: &'c mut Recorder,
}

impl ControllerContext<'_, '_> {
    /// Schedules an event after a delay.
    pub(super) fn schedule_after(&mut self, delay: Duration, event: ControllerEvent) {
        self.schedule_at(self.sim.now + delay, event);
    }

    /// Schedules an event at a time.
    pub(super) fn schedule_at(&mut self, time: Time, event: ControllerEvent) {
        self.queue.schedule(time, event, self.sim.sequence);
    }

    /// Records an event of a controller.
    pub(super) fn record(&mut self, component: &'static str, object: ObjectReference, event: EventBody) {
        self.recorder.record(self.sim, component, object, event);
    }

    /// Records an event of the scheduler.
    pub(super) fn record_series(&mut self, objects: Related, action: &str, event: EventBody) {
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
