//! Jobs: pods until enough of them have succeeded, or too many failed (`pkg/controller/job`).
//!
//! The real controller counts a pod in two steps, through `uncountedTerminatedPods` and its finalizer; here both are one. Not here: indexed
//! jobs, which the API refuses.

mod backoff;
mod end;
mod failure_policy;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::events::{Recorder, Weight};
use super::super::meta;
use super::pods::{Owner, dispensable, is_active, is_ready, is_terminating_pod};
use super::{Failed, Next, age, controller, count, number};
use crate::registry;
use crate::store::Kind;
use crate::world::Ctx;
pub(super) use backoff::Backoffs;
use end::{End, Outcome};

/// What keeps a pod until its job has counted it.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// A job in the midst of a look at it.
struct Job<'a> {
    owner: Owner<'a>,
    pods: Vec<Arc<Value>>,
    status: Value,
    /// Pods that run or will.
    active: i64,
    ready: i64,
    /// Pods that are about to end.
    terminating: i64,
    succeeded: i64,
    failed: i64,
}

/// Looks at a job.
pub(super) fn sync(object: &Value, backoffs: &mut Backoffs, recorder: &mut Recorder, ctx: &mut Ctx) -> Next {
    let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
    if is_finished(object) {
        backoffs.forget(namespace, name);
        return Ok(end::expire(object, ctx));
    }
    let owner = Owner { kind: Kind::Job, object, component: "job-controller" };
    let mut job = Job::read(owner, ctx);
    let (succeeded, failed) = job.news();
    let remembered = backoffs.note(namespace, name, &succeeded, &failed, ctx);
    job.succeeded += succeeded.len() as i64;
    job.failed += failed.iter().filter(|pod| failure_policy::counts(object, pod)).count() as i64;
    if job.status["startTime"].is_null() && !job.is_suspended() {
        job.status["startTime"] = json!(ctx.epoch().seconds(ctx.now));
    }
    let mut wait = None;
    let mut end = job.failure(ctx);
    let mut outcome = Ok(());
    if end.is_some() {
        let active = job.active_pods();
        job.delete(&active, recorder, ctx);
    } else {
        wait = job.deadline(ctx);
        if object["metadata"]["deletionTimestamp"].is_null() {
            match job.manage(remembered, recorder, ctx) {
                Ok(next) => wait = [wait, next].into_iter().flatten().min(),
                Err(failed) => outcome = Err(failed),
            }
        }
        end = job.success(ctx);
        if end.is_none() {
            job.suspend(recorder, ctx);
        }
    }
    job.finish(end.as_ref(), recorder, ctx);
    outcome.map(|()| wait)
}

/// Whether a job has come to its end.
pub(super) fn is_finished(job: &Value) -> bool {
    ["Complete", "Failed"].iter().any(|kind| end::has(&job["status"], kind))
}

/// Whether a pod waits for a job to count it.
pub(super) fn is_tracked(pod: &Value) -> bool {
    pod["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == TRACKING))
}

/// Whether there is a job that will count a pod.
pub(super) fn is_wanted(pod: &Value, ctx: &Ctx) -> bool {
    let Some(owner) = controller(pod) else { return false };
    let name = owner["name"].as_str().unwrap_or_default();
    // Another's pod is another's business.
    owner["kind"] != "Job"
        || ctx
            .store
            .get(Kind::Job, meta(pod, "namespace"), name)
            .is_some_and(|job| job["metadata"]["uid"] == owner["uid"] && !is_finished(job))
}

/// Lets a pod go that no job will count.
pub(super) fn let_go(pod: &Value, ctx: &mut Ctx) {
    if is_tracked(pod) && !is_wanted(pod, ctx) {
        registry::release(ctx, Kind::Pod, meta(pod, "namespace"), meta(pod, "name"), TRACKING);
    }
}

impl<'a> Job<'a> {
    fn read(owner: Owner<'a>, ctx: &mut Ctx) -> Self {
        let pods = owner.claim(Some(TRACKING), ctx);
        let counted = |is: fn(&Value) -> bool| pods.iter().filter(|pod| is(pod)).count() as i64;
        let status = owner.object["status"].clone();
        Self {
            active: counted(is_active),
            ready: counted(|pod| is_active(pod) && is_ready(pod)),
            terminating: counted(is_terminating_pod),
            succeeded: number(&status["succeeded"]),
            failed: number(&status["failed"]),
            owner,
            pods,
            status,
        }
    }

    fn spec(&self) -> &'a Value {
        &self.owner.object["spec"]
    }

    fn is_suspended(&self) -> bool {
        self.spec()["suspend"] == true
    }

    /// Whether a pod that is about to end is waited for before another is made (`onlyReplaceFailedPods`).
    fn is_patient(&self) -> bool {
        self.spec()["podReplacementPolicy"] == "Failed" || self.spec()["podFailurePolicy"].is_object()
    }

    /// Whether a pod counts as failed; one that is being deleted may never have the chance to be so (`isPodFailed`).
    fn has_failed(&self, pod: &Value) -> bool {
        let phase = &pod["status"]["phase"];
        *phase == "Failed"
            || !self.is_patient() && *phase != "Succeeded" && pod["metadata"]["deletionTimestamp"].is_string()
    }

    fn active_pods(&self) -> Vec<Arc<Value>> {
        self.pods.iter().filter(|pod| is_active(pod)).cloned().collect()
    }

    /// The pods that have succeeded or failed and are not counted yet.
    fn news(&self) -> (Vec<Arc<Value>>, Vec<Arc<Value>>) {
        let new = || self.pods.iter().filter(|pod| is_tracked(pod));
        let succeeded = new().filter(|pod| pod["status"]["phase"] == "Succeeded").cloned().collect();
        (succeeded, new().filter(|pod| self.has_failed(pod)).cloned().collect())
    }

    /// Makes pods, or deletes them; the answer is for how long a failure holds that up (`manageJob`).
    fn manage(&mut self, backoff: Duration, recorder: &mut Recorder, ctx: &mut Ctx) -> Next {
        let parallel = number(&self.spec()["parallelism"]);
        let wanted = match self.spec()["completions"].as_i64() {
            _ if self.is_suspended() => 0,
            Some(all) => (all - self.succeeded).clamp(0, parallel),
            // One success is enough, but who runs may end.
            None if self.succeeded > 0 => self.active,
            None => parallel,
        };
        let extra = usize::try_from(self.active - wanted).unwrap_or(0);
        if extra > 0 {
            let mut active = self.active_pods();
            active.sort_by_cached_key(|pod| dispensable(pod));
            active.truncate(extra);
            for pod in &active {
                // It is not to be counted.
                registry::release(ctx, Kind::Pod, meta(pod, "namespace"), meta(pod, "name"), TRACKING);
            }
            self.delete(&active, recorder, ctx);
            return Ok(None);
        }
        let leaving = if self.is_patient() { self.terminating } else { 0 };
        let missing = wanted - leaving - self.active;
        if missing <= 0 {
            return Ok(None);
        }
        if !backoff.is_zero() {
            // As the real one tells it, whatever runs meanwhile.
            self.active = 0;
            return Ok(Some(backoff.max(super::BATCH)));
        }
        for _ in 0..missing {
            self.owner.create(Some(TRACKING), recorder, ctx).map_err(|_| Failed)?;
            self.active += 1;
        }
        Ok(None)
    }

    fn delete(&mut self, pods: &[Arc<Value>], recorder: &mut Recorder, ctx: &mut Ctx) {
        for pod in pods {
            self.owner.delete(pod, recorder, ctx);
            self.ready -= i64::from(is_ready(pod));
            self.active -= 1;
            self.terminating += 1;
        }
    }

    /// When the job will have run for too long.
    fn deadline(&self, ctx: &Ctx) -> Option<Duration> {
        let most = self.spec()["activeDeadlineSeconds"].as_u64().filter(|_| !self.is_suspended())?;
        let since = age(&self.status["startTime"], ctx)?;
        Some(Duration::from_secs(most).saturating_sub(since))
    }

    /// The condition `Suspended`, once a job was suspended.
    fn suspend(&mut self, recorder: &mut Recorder, ctx: &mut Ctx) {
        let (was, is) = (end::has(&self.status, "Suspended"), self.is_suspended());
        if was == is {
            return;
        }
        let (status, reason, event, message) = match is {
            true => ("True", "JobSuspended", "Suspended", "Job suspended"),
            false => ("False", "JobResumed", "Resumed", "Job resumed"),
        };
        let condition = end::condition("Suspended", status, reason, message, ctx);
        end::set(&mut self.status, condition);
        if !is {
            self.status["startTime"] = json!(ctx.epoch().seconds(ctx.now));
        }
        self.owner.tell(Weight::Normal, event, message, recorder, ctx);
    }

    /// Counts pods that have come to their end, tells how the job is, and lets the pods go (`trackJobStatusAndRemoveFinalizers`).
    fn finish(mut self, end: Option<&End>, recorder: &mut Recorder, ctx: &mut Ctx) {
        let (mut succeeded, mut failed) = (number(&self.status["succeeded"]), number(&self.status["failed"]));
        let over = end.is_some() || self.owner.object["metadata"]["deletionTimestamp"].is_string();
        let lost = end.is_some_and(|end| end.outcome == Outcome::Failed);
        for pod in self.pods.iter().filter(|pod| is_tracked(pod)) {
            let done = pod["status"]["phase"] == "Succeeded";
            if !(over || done || self.has_failed(pod)) {
                continue;
            }
            // Of a job that has failed, every pod has that has not succeeded.
            let counts = (self.has_failed(pod) || lost) && failure_policy::counts(self.owner.object, pod);
            succeeded += i64::from(done);
            failed += i64::from(!done && counts);
            registry::release(ctx, Kind::Pod, meta(pod, "namespace"), meta(pod, "name"), TRACKING);
        }
        count(&mut self.status, "active", self.active);
        count(&mut self.status, "succeeded", succeeded);
        count(&mut self.status, "failed", failed);
        self.status["ready"] = json!(self.ready);
        self.status["terminating"] = json!(self.terminating);
        self.status["uncountedTerminatedPods"] = json!({});
        let finished = end.is_some_and(|end| end.enact(&mut self.status, self.terminating, ctx));
        let (namespace, name) = (meta(self.owner.object, "namespace"), meta(self.owner.object, "name"));
        let status = self.status;
        ctx.store.update(Kind::Job, namespace, name, |job| job["status"] = status);
        if let Some(end) = end.filter(|_| finished) {
            let (weight, reason, message) = end.event();
            self.owner.tell(weight, reason, message, recorder, ctx);
        }
    }
}
