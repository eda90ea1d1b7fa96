//! Jobs (`pkg/controller/job`).
//!
//! The counts are those of the pods that exist. Not implemented: indexed jobs and failure policies
//! that read exit codes or fail the job (rejected by the API), the finalizer by which the real
//! controller counts pods once, the interim conditions `FailureTarget` and `SuccessCriteriaMet`,
//! suspended jobs, `podReplacementPolicy`, fewer pods after a change of `parallelism`, and the
//! limit of container restarts with `restartPolicy: OnFailure`.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{
    JobCondition, JobStatus, PodFailurePolicy, PodFailurePolicyOnPodConditionsPattern,
};
use serde::Deserialize;
use serde_json::Value;

use super::pods::{PodController, is_active, is_terminating_pod};
use super::workload_spec::{
    PodTemplateSpec, ReconcileError, Reconciled, SYNC_JOB_BATCH_PERIOD, nonzero, saturating_i32,
};
use crate::apiserver::{self, DeleteOptions, control_plane_version};
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::resource::pod_status::ConditionStatus;
use crate::resource::{EventBody, Kind, ObjectExt, PodStatus};

/// Initial and maximum delay between the failure of a pod and its replacement
/// (`DefaultJobPodFailureBackOff`, `MaxJobPodFailureBackOff`).
const BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(600);

/// Fields of a job's spec that its controller reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSpec {
    parallelism: i32,
    completions: Option<i32>,
    backoff_limit: i32,
    active_deadline_seconds: Option<i64>,
    ttl_seconds_after_finished: Option<i64>,
    pod_failure_policy: Option<PodFailurePolicy>,
    template: PodTemplateSpec,
}

/// Job with its pods.
struct Job<'a> {
    owner: PodController<'a>,
    spec: JobSpec,
    pods: Vec<Arc<Value>>,
}

/// End of a job: the condition of its status, with its reason.
struct End {
    condition: &'static str,
    reason: &'static str,
    message: String,
}

/// Reconciles a job.
pub(super) fn sync(object: &Value, ctx: &mut ControllerContext) -> Reconciled {
    let spec: JobSpec = object.read("spec");
    if let Some(finished) = finish_time(object) {
        return Ok(expire(object, &spec, finished, ctx));
    }
    let owner = PodController { kind: Kind::Job, object, component: "job-controller" };
    let mut job = Job { pods: owner.claim(ctx), spec, owner };
    let left = job.left_until_deadline(ctx);
    let end = job.failure(left).or_else(|| job.success(ctx));
    let mut next = Ok(None);
    if end.is_some() {
        job.pods.iter().filter(|pod| is_active(pod)).for_each(|pod| job.owner.delete(pod, ctx));
    } else if !object.is_deleting() {
        let deadline = left.map(|left| left.max(SYNC_JOB_BATCH_PERIOD));
        next = job.create_pods(ctx).map(|next| next.into_iter().chain(deadline).min());
    }
    job.pods = job.owner.claim(ctx);
    job.write_status(end, ctx);
    next
}

/// Returns the time at which a job was complete or failed.
fn finish_time(object: &Value) -> Option<Timestamp> {
    let status: JobStatus = object.read("status");
    let mut conditions = status.conditions.into_iter().flatten();
    let end = conditions.find(|condition| ["Complete", "Failed"].contains(&condition.type_.as_str()))?;
    Some(end.last_transition_time?.0)
}

/// Deletes a finished job whose time to live is over, with its dependents, or returns what is left
/// of it (`ttlafterfinished`).
fn expire(
    object: &Value,
    spec: &JobSpec,
    finished: Timestamp,
    ctx: &mut ControllerContext,
) -> Option<Duration> {
    let left = time_left(finished, spec.ttl_seconds_after_finished?, ctx);
    if left.is_zero() {
        let options = DeleteOptions { foreground: true, ..DeleteOptions::default() };
        // A job that is already gone needs no deletion.
        let _ = apiserver::delete(ctx, Kind::Job, object.namespace(), object.name(), options);
    }
    Some(left.max(SYNC_JOB_BATCH_PERIOD)).filter(|_| !left.is_zero())
}

/// Returns the time until `seconds` after `since`; zero if it has passed.
fn time_left(since: Timestamp, seconds: i64, ctx: &SimContext) -> Duration {
    let left = SignedDuration::from_secs(seconds) - ctx.epoch().at(ctx.now).duration_since(since);
    left.max(SignedDuration::ZERO).unsigned_abs()
}

impl Job<'_> {
    fn count(&self, is: impl Fn(&Value) -> bool) -> i32 {
        saturating_i32(self.pods.iter().filter(|pod| is(pod)).count())
    }

    fn succeeded(&self) -> i32 {
        self.count(|pod| pod.phase() == "Succeeded")
    }

    /// Returns the number of failed pods that the failure policy counts.
    fn failed(&self) -> i32 {
        let policy = self.spec.pod_failure_policy.as_ref();
        let is_counted = |pod: &Value| policy.is_none_or(|policy| counts(policy, pod));
        self.count(|pod| self.has_failed(pod) && is_counted(pod))
    }

    /// Returns whether a pod has failed. Without a failure policy, pods that are being deleted
    /// count as failed and are replaced at once (`isPodFailed`).
    fn has_failed(&self, pod: &Value) -> bool {
        let phase = pod.phase();
        let fails_early = self.spec.pod_failure_policy.is_none() && pod.is_deleting();
        phase == "Failed" || fails_early && phase != "Succeeded"
    }

    fn completions(&self) -> i32 {
        self.spec.completions.unwrap_or(1)
    }

    /// Returns the time until the job's deadline, if it has one.
    fn left_until_deadline(&self, ctx: &SimContext) -> Option<Duration> {
        let status: JobStatus = self.owner.object.read("status");
        let started = status.start_time.map_or_else(|| ctx.epoch().at(ctx.now), |time| time.0);
        Some(time_left(started, self.spec.active_deadline_seconds?, ctx))
    }

    /// Returns the end if the job has failed; `left` is the time until its deadline.
    fn failure(&self, left: Option<Duration>) -> Option<End> {
        let end = |reason, message| End { condition: "Failed", reason, message };
        if self.failed() > self.spec.backoff_limit {
            let message = "Job has reached the specified backoff limit";
            return Some(end("BackoffLimitExceeded", message.to_owned()));
        }
        let message = "Job was active longer than specified deadline";
        left.filter(Duration::is_zero).map(|_| end("DeadlineExceeded", message.to_owned()))
    }

    /// Returns the end if enough pods have succeeded.
    fn success(&self, ctx: &SimContext) -> Option<End> {
        if self.succeeded() < self.completions() || self.count(is_active) > 0 {
            return None;
        }
        // `JobSuccessPolicy`, since 1.31.
        let has_reason = control_plane_version(ctx).at_least(31);
        let text = |text| if has_reason { text } else { "" };
        Some(End {
            condition: "Complete",
            reason: text("CompletionsReached"),
            message: text("Reached expected number of succeeded pods").to_owned(),
        })
    }

    /// Creates the missing pods. Returns the remaining backoff if it prevents that (`manageJob`).
    fn create_pods(&self, ctx: &mut ControllerContext) -> Reconciled {
        let wanted = (self.completions() - self.succeeded()).clamp(0, self.spec.parallelism.max(0));
        // With a failure policy, terminating pods are replaced only after their end.
        let terminating =
            if self.spec.pod_failure_policy.is_some() { self.count(is_terminating_pod) } else { 0 };
        let missing = wanted - terminating - self.count(is_active);
        if missing <= 0 {
            return Ok(None);
        }
        let backoff = self.backoff(ctx);
        if !backoff.is_zero() {
            return Ok(Some(backoff.max(SYNC_JOB_BATCH_PERIOD)));
        }
        for _ in 0..missing {
            self.owner.create(&self.spec.template, ctx).map_err(|_| ReconcileError)?;
        }
        Ok(None)
    }

    /// Returns the remaining delay until a failed pod is replaced. It doubles with each failure,
    /// also with those that the failure policy ignores.
    fn backoff(&self, ctx: &SimContext) -> Duration {
        let failed = || self.pods.iter().filter(|pod| self.has_failed(pod));
        let Some(last) = failed().filter_map(|pod| end_time(pod)).max() else { return Duration::ZERO };
        let doublings = (failed().count() - 1).min(16);
        let delay = BACKOFF.saturating_mul(1 << doublings).min(MAX_BACKOFF);
        let since = ctx.epoch().at(ctx.now).duration_since(last).max(SignedDuration::ZERO);
        delay.saturating_sub(since.unsigned_abs())
    }

    fn write_status(&self, end: Option<End>, ctx: &mut ControllerContext) {
        let now = ctx.epoch().meta_time(ctx.now);
        let object = self.owner.object;
        let mut status: JobStatus = object.read("status");
        // Pods that were removed stay counted.
        let most = |now: i32, before: Option<i32>| nonzero(now.max(before.unwrap_or(0)));
        status.start_time.get_or_insert_with(|| now.clone());
        status.active = nonzero(self.count(is_active));
        status.ready = Some(self.count(|pod| is_active(pod) && pod.has_condition("Ready")));
        status.terminating = Some(self.count(is_terminating_pod));
        status.succeeded = most(self.succeeded(), status.succeeded);
        status.failed = most(self.failed(), status.failed);
        if let Some(End { condition, reason, message }) = &end {
            let present = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            status.conditions.get_or_insert_default().push(JobCondition {
                type_: (*condition).to_owned(),
                status: "True".to_owned(),
                last_probe_time: Some(now.clone()),
                last_transition_time: Some(now.clone()),
                reason: present(reason),
                message: present(message),
            });
            status.completion_time = Some(now).filter(|_| *condition == "Complete");
        }
        ctx.store.update(Kind::Job, object.namespace(), object.name(), |job| job.write("status", &status));
        if let Some(end) = end {
            let event = match end.condition {
                "Complete" => EventBody::normal("Completed", "Job completed"),
                _ => EventBody::warning(end.reason, &end.message),
            };
            self.owner.record_event(event, ctx);
        }
    }
}

/// Returns whether a policy counts the failure of a pod: unless the first rule that a condition of
/// the pod matches ignores it (`pod_failure_policy.go`).
fn counts(policy: &PodFailurePolicy, pod: &Value) -> bool {
    let status = PodStatus::of(pod);
    let is_met = |wanted: &PodFailurePolicyOnPodConditionsPattern| {
        status.condition(&wanted.type_).is_some_and(|found| found.status.to_string() == wanted.status)
    };
    let first = policy.rules.iter().find(|rule| rule.on_pod_conditions.iter().flatten().any(is_met));
    first.is_none_or(|rule| rule.action != "Ignore")
}

/// Returns the end time of a pod: of its last container, or when it became unready or was created.
fn end_time(pod: &Value) -> Option<Timestamp> {
    let status = PodStatus::of(pod);
    let ends = status.container_statuses.iter();
    let ends: Option<Vec<Timestamp>> =
        ends.map(|one| one.state.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0)).collect();
    let unready = || {
        let ready = status.condition("Ready").filter(|ready| ready.status == ConditionStatus::False)?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    };
    ends.and_then(|ends| ends.into_iter().max()).or_else(unready).or_else(|| pod.created())
}
