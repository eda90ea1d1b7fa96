//! Reconciliation of a job.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::UncountedTerminatedPods;
use serde_json::Value;

use super::backoff::Backoffs;
use super::end::{End, Outcome};
use super::state::{Job, TRACKING, is_tracked};
use crate::apiserver;
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::controllers::owners;
use crate::controllers::workloads::pods::{Owner, deletion_key};
use crate::controllers::workloads::reconcile::{BATCH, ReconcileError, Reconciled, count};
use crate::resource::{Kind, ObjectExt};

/// Reconciles a job.
pub(in crate::controllers::workloads) fn sync(
    object: &Value,
    backoffs: &mut Backoffs,
    ctx: &mut ControllerContext,
) -> Reconciled {
    let (namespace, name) = (object.namespace(), object.name());
    if is_finished(object) {
        backoffs.forget(namespace, name);
        return Ok(None);
    }
    let owner = Owner { kind: Kind::Job, object, component: "job-controller" };
    let mut job = Job::read(owner, ctx);
    let (succeeded, failed) = job.uncounted();
    let remembered = backoffs.note(namespace, name, &succeeded, &failed, ctx);
    job.succeeded += succeeded.len() as i64;
    job.failed += failed.iter().filter(|pod| job.counts(pod)).count() as i64;
    job.status.start_time.get_or_insert_with(|| ctx.epoch().meta_time(ctx.now));
    let mut end = job.failure();
    let mut outcome = Ok(None);
    if end.is_some() {
        let active = job.active_pods();
        job.delete(&active, ctx);
    } else {
        if !object.is_deleting() {
            outcome = job.manage(remembered, ctx);
        }
        end = job.success(ctx);
    }
    job.finish(end.as_ref(), ctx);
    outcome
}

/// Returns whether a job has ended.
pub(in crate::controllers::workloads) fn is_finished(job: &Value) -> bool {
    ["Complete", "Failed"].iter().any(|kind| job.has_condition(kind))
}

/// Returns whether a job will count a pod.
pub(in crate::controllers::workloads) fn is_wanted(pod: &Value, ctx: &SimContext) -> bool {
    let Some(owner) = pod.controller() else { return false };
    // Pods of other controllers are left alone.
    owners::kind(&owner) != Some(Kind::Job)
        || owners::find(&owner, pod.namespace(), ctx).is_some_and(|(_, job)| !is_finished(job))
}

/// Removes the finalizer of a pod that no job will count.
pub(in crate::controllers::workloads) fn release_orphan(pod: &Value, ctx: &mut ControllerContext) {
    if is_tracked(pod) && !is_wanted(pod, ctx) {
        apiserver::remove_finalizer(ctx, Kind::Pod, pod.namespace(), pod.name(), TRACKING);
    }
}

impl Job<'_> {
    /// Creates or deletes pods. Returns the remaining backoff if it prevents a creation
    /// (`manageJob`).
    fn manage(&mut self, backoff: Duration, ctx: &mut ControllerContext) -> Reconciled {
        let parallel = self.spec.parallelism;
        let wanted = match self.spec.completions {
            Some(all) => (all - self.succeeded).clamp(0, parallel),
            // One success is enough; running pods may complete.
            None if self.succeeded > 0 => self.active,
            None => parallel,
        };
        let extra = usize::try_from(self.active - wanted).unwrap_or(0);
        if extra > 0 {
            let mut active = self.active_pods();
            active.sort_by_cached_key(|pod| deletion_key(pod));
            active.truncate(extra);
            for pod in &active {
                // Deleted pods are not counted.
                apiserver::remove_finalizer(ctx, Kind::Pod, pod.namespace(), pod.name(), TRACKING);
            }
            self.delete(&active, ctx);
            return Ok(None);
        }
        let leaving = if self.replaces_failed_only() { self.terminating } else { 0 };
        let missing = wanted - leaving - self.active;
        if missing <= 0 {
            return Ok(None);
        }
        if !backoff.is_zero() {
            // The real controller reports no active pods during the backoff.
            self.active = 0;
            return Ok(Some(backoff.max(BATCH)));
        }
        for _ in 0..missing {
            self.owner.create(&self.spec.template, Some(TRACKING), ctx).map_err(|_| ReconcileError)?;
            self.active += 1;
        }
        Ok(None)
    }

    fn delete(&mut self, pods: &[Arc<Value>], ctx: &mut ControllerContext) {
        for pod in pods {
            self.owner.delete(pod, ctx);
            self.ready -= i64::from(pod.has_condition("Ready"));
            self.active -= 1;
            self.terminating += 1;
        }
    }

    /// Counts ended pods, updates the status, and removes the finalizers
    /// (`trackJobStatusAndRemoveFinalizers`).
    fn finish(mut self, end: Option<&End>, ctx: &mut ControllerContext) {
        let count = |number: i64| i32::try_from(number).ok().and_then(count);
        let (mut succeeded, mut failed) = (0, 0);
        let over = end.is_some() || self.owner.object.is_deleting();
        let lost = end.is_some_and(|end| end.outcome == Outcome::Failed);
        for pod in self.pods.iter().filter(|pod| is_tracked(pod)) {
            let done = pod.phase() == "Succeeded";
            if !(over || done || self.has_failed(pod)) {
                continue;
            }
            // If the job has failed, all pods that have not succeeded have failed.
            let counts = (self.has_failed(pod) || lost) && self.counts(pod);
            succeeded += i64::from(done);
            failed += i64::from(!done && counts);
            apiserver::remove_finalizer(ctx, Kind::Pod, pod.namespace(), pod.name(), TRACKING);
        }
        let status = &mut self.status;
        status.active = count(self.active);
        status.succeeded = count(succeeded + i64::from(status.succeeded.unwrap_or(0)));
        status.failed = count(failed + i64::from(status.failed.unwrap_or(0)));
        status.ready = i32::try_from(self.ready).ok();
        status.terminating = i32::try_from(self.terminating).ok();
        status.uncounted_terminated_pods = Some(UncountedTerminatedPods::default());
        let finished = end.is_some_and(|end| end.enact(status, self.terminating, ctx));
        let (namespace, name) = (self.owner.object.namespace(), self.owner.object.name());
        let status = &self.status;
        ctx.store.update(Kind::Job, namespace, name, |job| job.write("status", status));
        if let Some(end) = end.filter(|_| finished) {
            self.owner.record_event(end.event(), ctx);
        }
    }
}
