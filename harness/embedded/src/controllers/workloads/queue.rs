//! Queue of the workload controllers: objects to reconcile, in order of time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::workload_spec::{ReconcileError, SYNC_JOB_BATCH_PERIOD};
use super::{deployment, job, replica_set};
use crate::controllers::context::{ControllerContext, ControllerTask, WorkloadKey};
use crate::controllers::owners;
use crate::resource::{Kind, ObjectExt, label_selector};
use crate::sim::SimTime;
use crate::storage::{ObjectChange, WatchEventType};

/// Delay until a controller handles an object.
const SYNC_DELAY: Duration = Duration::from_millis(5);

impl WorkloadKey {
    fn of(kind: Kind, object: &Value) -> Self {
        Self { kind, namespace: object.namespace().to_owned(), name: object.name().to_owned() }
    }
}

/// Work queue of the workload controllers, with their state.
#[derive(Debug, Default)]
pub(in crate::controllers) struct Workloads {
    /// Due times of objects.
    due: BTreeMap<WorkloadKey, SimTime>,
    /// Consecutive failures of objects.
    failures: BTreeMap<WorkloadKey, u32>,
}

impl Workloads {
    /// Handles a change of an object.
    pub(in crate::controllers) fn handle_change(
        &mut self,
        change: &ObjectChange,
        ctx: &mut ControllerContext,
    ) {
        let object = &change.object;
        match change.kind {
            Kind::Deployment => self.schedule(WorkloadKey::of(Kind::Deployment, object), SYNC_DELAY, ctx),
            Kind::ReplicaSet => {
                self.schedule(WorkloadKey::of(Kind::ReplicaSet, object), SYNC_DELAY, ctx);
                self.schedule_owners(change, Kind::Deployment, SYNC_DELAY, ctx);
            }
            Kind::Job => self.job_changed(change, ctx),
            Kind::Pod => self.pod_changed(change, ctx),
            _ => {}
        }
    }

    /// Reconciles an object that is due, unless it was rescheduled.
    pub(in crate::controllers) fn reconcile_due(&mut self, key: &WorkloadKey, ctx: &mut ControllerContext) {
        if self.due.get(key).is_none_or(|due| ctx.now < *due) {
            return;
        }
        self.due.remove(key);
        let object = ctx.store.get(key.kind, &key.namespace, &key.name).cloned();
        let Some(object) = object else {
            self.failures.remove(key);
            return;
        };
        let next = match key.kind {
            Kind::Deployment => deployment::sync(&object, ctx),
            Kind::ReplicaSet => replica_set::sync(&object, ctx),
            Kind::Job => job::sync(&object, ctx),
            _ => Ok(None),
        };
        match next {
            Ok(next) => {
                self.failures.remove(key);
                if let Some(wait) = next {
                    self.schedule(key.clone(), wait, ctx);
                }
            }
            Err(ReconcileError) => {
                // `DefaultTypedControllerRateLimiter`: 5 ms, doubled each time, 1000 s at most.
                const MOST: Duration = Duration::from_secs(1000);
                let times = self.failures.entry(key.clone()).or_default();
                let wait = SYNC_DELAY.saturating_mul(1 << (*times).min(20)).min(MOST);
                *times += 1;
                self.schedule(key.clone(), wait, ctx);
            }
        }
    }

    fn pod_changed(&mut self, change: &ObjectChange, ctx: &mut ControllerContext) {
        let pod = &change.object;
        self.schedule_owners(change, Kind::ReplicaSet, SYNC_DELAY, ctx);
        self.schedule_owners(change, Kind::Job, SYNC_JOB_BATCH_PERIOD, ctx);
        if pod.controller().is_none() && change.event_type != WatchEventType::Deleted {
            for (kind, wait) in [(Kind::ReplicaSet, SYNC_DELAY), (Kind::Job, SYNC_JOB_BATCH_PERIOD)] {
                let all = ctx.store.list(kind, Some(pod.namespace()));
                let mine: Vec<WorkloadKey> = all
                    .filter(|owner| label_selector::selects(owner, pod))
                    .map(|owner| WorkloadKey::of(kind, owner))
                    .collect();
                mine.into_iter().for_each(|key| self.schedule(key, wait, ctx));
            }
        }
    }

    fn job_changed(&mut self, change: &ObjectChange, ctx: &mut ControllerContext) {
        let job = &change.object;
        let same = change.before.as_ref().is_some_and(|before| before.generation() == job.generation());
        let deleted = change.event_type == WatchEventType::Deleted;
        let wait = if same && !deleted { SYNC_JOB_BATCH_PERIOD } else { SYNC_DELAY };
        self.schedule(WorkloadKey::of(Kind::Job, job), wait, ctx);
    }

    /// Schedules the current and the former controller of an object.
    fn schedule_owners(
        &mut self,
        change: &ObjectChange,
        kind: Kind,
        wait: Duration,
        ctx: &mut ControllerContext,
    ) {
        let namespace = change.object.namespace();
        for object in [Some(&change.object), change.before.as_ref()].into_iter().flatten() {
            let owner = object.controller().and_then(|owner| owners::find(&owner, namespace, ctx));
            if let Some((_, owner)) = owner.filter(|(found, _)| *found == kind) {
                self.schedule(WorkloadKey::of(kind, owner), wait, ctx);
            }
        }
    }

    /// Schedules an object, unless it is due earlier.
    fn schedule(&mut self, key: WorkloadKey, wait: Duration, ctx: &mut ControllerContext) {
        let due = ctx.now + wait;
        if self.due.get(&key).is_none_or(|scheduled| due < *scheduled) {
            self.due.insert(key.clone(), due);
            ctx.schedule_at(due, ControllerTask::Reconcile(key));
        }
    }
}
