//! Reconciliation of a job.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::backoff::Backoffs;
use super::end::{self, End, Outcome};
use super::failure_policy;
use super::state::{Job, TRACKING, is_tracked};
use crate::apiserver;
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
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
    job.failed += failed.iter().filter(|pod| failure_policy::counts(object, pod)).count() as i64;
    if job.status["startTime"].is_null() {
        job.status["startTime"] = json!(ctx.epoch().seconds(ctx.now));
    }
    let mut wait = None;
    let mut end = job.failure(ctx);
    let mut outcome = Ok(());
    if end.is_some() {
        let active = job.active_pods();
        job.delete(&active, ctx);
    } else {
        wait = job.deadline(ctx);
        if !object.is_deleting() {
            match job.manage(remembered, ctx) {
                Ok(next) => wait = [wait, next].into_iter().flatten().min(),
                Err(failed) => outcome = Err(failed),
            }
        }
        end = job.success(ctx);
    }
    job.finish(end.as_ref(), ctx);
    outcome.map(|()| wait)
}

/// Returns whether a job has ended.
pub(in crate::controllers::workloads) fn is_finished(job: &Value) -> bool {
    ["Complete", "Failed"].iter().any(|kind| end::has(&job["status"], kind))
}

/// Returns whether a job will count a pod.
pub(in crate::controllers::workloads) fn is_wanted(pod: &Value, ctx: &SimContext) -> bool {
    let Some(owner) = pod.controller() else { return false };
    let name = owner.text("name");
    // Pods of other controllers are left alone.
    owner["kind"] != "Job"
        || ctx
            .store
            .get(Kind::Job, pod.namespace(), name)
            .is_some_and(|job| job.uid() == owner.text("uid") && !is_finished(job))
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
        let parallel = self.spec().integer("parallelism");
        let wanted = match self.spec()["completions"].as_i64() {
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
            self.owner.create(Some(TRACKING), ctx).map_err(|_| ReconcileError)?;
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
        let (mut succeeded, mut failed) = (self.status.integer("succeeded"), self.status.integer("failed"));
        let over = end.is_some() || self.owner.object.is_deleting();
        let lost = end.is_some_and(|end| end.outcome == Outcome::Failed);
        for pod in self.pods.iter().filter(|pod| is_tracked(pod)) {
            let done = pod.phase() == "Succeeded";
            if !(over || done || self.has_failed(pod)) {
                continue;
            }
            // If the job has failed, all pods that have not succeeded have failed.
            let counts = (self.has_failed(pod) || lost) && failure_policy::counts(self.owner.object, pod);
            succeeded += i64::from(done);
            failed += i64::from(!done && counts);
            apiserver::remove_finalizer(ctx, Kind::Pod, pod.namespace(), pod.name(), TRACKING);
        }
        count(&mut self.status, "active", self.active);
        count(&mut self.status, "succeeded", succeeded);
        count(&mut self.status, "failed", failed);
        self.status["ready"] = json!(self.ready);
        self.status["terminating"] = json!(self.terminating);
        self.status["uncountedTerminatedPods"] = json!({});
        let finished = end.is_some_and(|end| end.enact(&mut self.status, self.terminating, ctx));
        let (namespace, name) = (self.owner.object.namespace(), self.owner.object.name());
        let status = self.status;
        ctx.store.update(Kind::Job, namespace, name, |job| job["status"] = status);
        if let Some(end) = end.filter(|_| finished) {
            self.owner.record_event(end.event(), ctx);
        }
    }
}
