//! Additions, updates and removals of pod objects (`syncLoopIteration`).

use std::sync::Arc;

use evictlab_rules::message::EVICTED_REASON;
use evictlab_rules::threshold::Signal;
use serde_json::Value;

use super::admit::{AdmittedStart, Rejection};
use super::latency;
use super::mirror::{self, is_static};
use super::resize::keep_resources;
use super::spec::{KnownFields, Manifest};
use super::worker::{Stage, Worker};
use crate::apiserver::is_extended_resource;
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;
use crate::resource::{EventBody, Kind, ObjectExt, Phase, PodStatus};
use crate::storage::{ObjectChange, WatchEventType};

impl Kubelet {
    /// Handles changes of the node's pods, as far as they were made since the last call; `None`
    /// stands for changes that the caller cannot name.
    pub(in crate::kubelet) fn handle_pod_changes(
        &mut self,
        changes: Option<Vec<ObjectChange>>,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let seen = std::mem::replace(&mut self.pods.seen, ctx.store.version());
        let changes = changes.or_else(|| self.own_changes(seen, ctx));
        let changes: Vec<_> = match changes {
            Some(changes) => {
                let new = changes.into_iter().filter(|change| change.version > seen);
                let pods = new.filter(|change| !self.mirror_changed(change, ctx));
                pods.map(|change| (change.event_type == WatchEventType::Deleted, change.object)).collect()
            }
            None => self.all_pods(ctx),
        };
        for (removed, object) in changes {
            let object = mirror::from_api(object);
            let uid = object.uid().to_owned();
            if !self.pods.workers.contains_key(&uid) {
                if !removed {
                    self.add_pod(object, None, machine, ctx);
                }
                continue;
            }
            self.with_worker(&uid, |kubelet, worker| {
                kubelet.changed_pod(worker, object, removed, machine, ctx)
            });
            self.forget_if_finished(&uid, machine, ctx);
        }
    }

    /// Returns the changes of the node's pods after a version; `None` if the history is too short.
    fn own_changes(&self, seen: u64, ctx: &SimContext) -> Option<Vec<ObjectChange>> {
        let changes = ctx.store.since(seen).ok()?;
        Some(
            changes
                .filter(|change| change.kind == Kind::Pod && self.is_own(&change.object))
                .cloned()
                .collect(),
        )
    }

    /// Returns all pods, because the history of changes is too short: (removed, object).
    fn all_pods(&self, ctx: &SimContext) -> Vec<(bool, Arc<Value>)> {
        let own = ctx.store.pods_on(&self.options.name);
        let own: Vec<_> = own.filter(|pod| mirror::hash_of(pod).is_none()).cloned().collect();
        let is_there = |worker: &Worker| {
            is_static(&worker.object) || own.iter().any(|pod| pod.uid() == worker.manifest.uid)
        };
        let removed = self.pods.workers.values().filter(|worker| !is_there(worker));
        let removed: Vec<_> = removed.map(|worker| (true, worker.object.clone())).collect();
        removed.into_iter().chain(own.into_iter().map(|pod| (false, pod))).collect()
    }

    /// Returns the fields of pods that the kubelet knows.
    pub(super) fn known_fields(&self) -> KnownFields {
        let version = &self.options.version;
        KnownFields {
            sidecars: version.at_least(28),
            pod_level_resources: self.config.settings.gates.pod_level_resources,
            restart_rules: self.config.settings.gates.container_restart_rules,
        }
    }

    /// Adds a pod that the kubelet does not know, with the resources that were allocated to it
    /// before a restart.
    pub(super) fn add_pod(
        &mut self,
        object: Arc<Value>,
        allocated: Option<&Manifest>,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let mut manifest = Manifest::read(&object, self.known_fields());
        if let Some(allocated) = allocated.filter(|_| self.config.settings.gates.resizes_pods) {
            keep_resources(&mut manifest, allocated);
        }
        let uid = manifest.uid.clone();
        let reverts = self.has(Defect::StatusRevertsAtRestart) && PodStatus::of(&object).is_evicted();
        let object = if reverts { Arc::new(without_status(&object)) } else { object };
        let deleted = object.is_deleting();
        let is_known = self.pods.runtime.pods.get(&uid).is_some_and(|pod| pod.sandbox.is_some());
        let mut worker = Worker::new(object, manifest);
        let ended = worker.reported.is_terminal();
        if ended && self.pods.running(&uid).is_empty() {
            worker.stage = Stage::Finished;
        } else if !is_known && !deleted {
            match self.admit(&worker, machine, ctx) {
                Ok(start) => worker.preempts = start == AdmittedStart::AfterPreemption,
                Err(rejection) => {
                    worker.stage = Stage::Finished;
                    self.reject(&mut worker, rejection, ctx);
                }
            }
        }
        if worker.stage == Stage::Finished && deleted {
            self.send_status(&mut worker, ctx);
        }
        if worker.stage == Stage::Syncing {
            if deleted || ended {
                self.terminate(&mut worker, None, None, machine, ctx);
            } else {
                let at = ctx.now + latency::between(ctx.rng, 2, 15);
                self.schedule_pod(at, PodEvent::Sync(uid.clone()), ctx);
                self.schedule_active_deadline(&worker, ctx);
            }
        }
        self.pods.workers.insert(uid, worker);
    }

    /// Admits the pods again that ran before the kubelet started, after the first pass of the
    /// eviction manager: the kubelet handles its pods only once the runtime is known to be healthy.
    /// A pod that is rejected is killed (kubernetes/kubernetes#83612) by the next housekeeping, as
    /// it has no pod worker.
    ///
    /// Pods are admitted in the order of their creation, with the same checks as new ones, beside
    /// those admitted before (`HandlePodAdditions` of `pkg/kubelet/kubelet.go`). The node object
    /// has the allocatable resources of the new configuration by then: the kubelet updates it when
    /// it starts, and looks at its pods 100 ms later at the earliest (`syncLoop`). A slow API
    /// server could reverse this order.
    pub(in crate::kubelet) fn readmit_pods(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        let pods = std::mem::take(&mut self.pods.readmission);
        self.pods.unadmitted = pods.iter().cloned().collect();
        for uid in pods {
            let is_admitted = self.with_worker(&uid, |kubelet, worker| {
                kubelet.readmit(worker, machine, ctx);
                worker.stage == Stage::Syncing
            });
            if is_admitted == Some(true) {
                self.pods.unadmitted.remove(&uid);
            }
        }
        self.pods.unadmitted.clear();
    }

    fn readmit(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut SimContext) {
        let has_ended = worker.stage == Stage::Finished && self.has(Defect::RestartAdmitsEndedPods);
        if worker.stage != Stage::Syncing && !has_ended {
            return;
        }
        if self.has(Defect::RestartAllocatesResizes) && worker.pending_resize.take().is_some() {
            worker.manifest = Manifest::read(&worker.object, self.known_fields());
        }
        match self.admit(worker, machine, ctx) {
            Ok(start) => worker.preempts = start == AdmittedStart::AfterPreemption,
            Err(rejection) if has_ended => self.reject(worker, rejection, ctx),
            Err(rejection) => {
                worker.stage = Stage::Rejected;
                worker.steps.clear();
                self.reject(worker, rejection, ctx);
                let at = ctx.now + latency::between(ctx.rng, 1500, 2000);
                self.schedule_pod(at, PodEvent::KillRejected(worker.manifest.uid.clone()), ctx);
            }
        }
    }

    /// Rejects a pod: its status has only phase, reason and message, and since 1.32 its QoS class
    /// (`rejectPod` of `pkg/kubelet/kubelet.go`).
    fn reject(&mut self, worker: &mut Worker, rejection: Rejection, ctx: &mut SimContext) {
        let Rejection { reason, message } = rejection;
        let event = if self.has(Defect::AdmissionEventNormal) {
            EventBody::normal(&reason, &message)
        } else {
            EventBody::warning(&reason, &message)
        };
        if !self.has(Defect::AdmissionWithoutEvent) {
            self.record_event(EventObject::Pod(&worker.object, None), event, ctx);
        }
        let is_eviction = reason == EVICTED_REASON;
        if is_eviction && self.has(Defect::AdmissionIsCounted) {
            self.eviction.metrics.count_eviction(Signal::MemoryAvailable.as_str());
        }
        // `recordAdmissionRejection` of pkg/kubelet/kubelet.go, since 1.32.
        if self.options.version.at_least(32) {
            let is_other = is_eviction && self.has(Defect::AdmissionCountedAsOther)
                || lacks_extended(&reason) && self.has(Defect::AdmissionExtendedCountedAsOther);
            self.eviction.metrics.count_admission_rejection(if is_other { "Other" } else { &reason });
        }
        let differs = is_eviction && self.has(Defect::AdmissionReasonDiffers);
        let reason = if differs { "NodePressure".to_owned() } else { reason };
        let keeps_class = self.options.version.at_least(32);
        let status = PodStatus {
            phase: Some(Phase::Failed),
            reason: Some(reason),
            message: Some(format!("Pod was rejected: {message}")),
            qos_class: keeps_class.then(|| worker.manifest.pod.qos_class()),
            ..PodStatus::default()
        };
        self.keep_status(worker, status, ctx);
    }

    fn changed_pod(
        &mut self,
        worker: &mut Worker,
        object: Arc<Value>,
        removed: bool,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let spec_changed = worker.object.spec() != object.spec();
        // `podsDifferSemantically` of pkg/kubelet/config/config.go.
        let differs = |field: &str| worker.object.metadata().get(field) != object.metadata().get(field);
        let is_update = spec_changed || differs("labels") || differs("annotations");
        let old = worker.replace_object(object);
        if spec_changed {
            self.update_manifest(worker, machine, ctx);
        }
        worker.removed |= removed;
        let grace = |object: &Value| object.metadata().integer("deletionGracePeriodSeconds");
        let has_changed = removed || grace(&worker.object) != grace(&old);
        match worker.stage {
            Stage::Syncing | Stage::Rejected if worker.is_deleted() => {
                self.terminate(worker, None, None, machine, ctx)
            }
            Stage::Syncing if is_update => self.request_inspection(worker, ctx),
            Stage::Terminating if has_changed && worker.is_deleted() => {
                self.terminate(worker, None, None, machine, ctx)
            }
            // The API server waits for a terminal status before it deletes the pod.
            Stage::Finished if has_changed && worker.is_deleted() && !removed => {
                self.send_status(worker, ctx)
            }
            _ => {}
        }
        // Since 1.36 (`HandlePodReconcile`).
        let has_ended = worker.reported.is_terminal() && !PodStatus::of(&old).is_terminal();
        if has_ended && self.options.version.at_least(36) && !self.has(Defect::ResizeIgnoresEndedPods) {
            self.retry_resizes(|_, other| other.pending_resize.is_some(), machine, ctx);
        }
        // The update with the eviction's status allows the containers to be removed
        // (`HandlePodReconcile`).
        if worker.reported.phase == Some(Phase::Failed) && worker.reported.is_evicted() {
            let uid = worker.manifest.uid.clone();
            self.forget_dead(&uid, 0, machine);
        }
    }

    /// Forgets a pod that has finished, whose object was deleted and for whose end nobody waits.
    pub(super) fn forget_if_finished(&mut self, uid: &str, machine: &mut Machine, ctx: &mut SimContext) {
        let is_over =
            |worker: &Worker| worker.removed && worker.stage == Stage::Finished && worker.callers.is_empty();
        if self.pods.workers.get(uid).is_some_and(is_over) {
            self.pods.workers.remove(uid);
            for container in self.pods.runtime.forget(uid) {
                machine.remove(&container);
            }
            machine.remove_volumes(uid);
            self.retry_resizes(|_, worker| worker.pending_resize.is_some(), machine, ctx);
        }
    }
}

/// Returns whether the reason of a rejection names an extended resource.
fn lacks_extended(reason: &str) -> bool {
    reason.strip_prefix("OutOf").is_some_and(is_extended_resource)
}

fn without_status(object: &Value) -> Value {
    let mut object = object.clone();
    object.write("status", PodStatus::default());
    object
}
