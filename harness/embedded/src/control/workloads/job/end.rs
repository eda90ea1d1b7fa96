//! How a job comes to its end: what decides it, what is told.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::super::events::Weight;
use super::super::super::meta;
use super::super::{age, number};
use super::{Job, failure_policy};
use crate::registry::{self, DeleteOptions, Propagation, control_plane};
use crate::store::Kind;
use crate::world::Ctx;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Complete,
    Failed,
}

impl Outcome {
    /// The condition that is told when it is decided, and the one when nothing is left of the pods.
    fn conditions(self) -> [&'static str; 2] {
        match self {
            Self::Complete => ["SuccessCriteriaMet", "Complete"],
            Self::Failed => ["FailureTarget", "Failed"],
        }
    }
}

/// How a job ends, and why.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    reason: String,
    message: String,
}

impl End {
    fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, reason: reason.to_owned(), message: message.into() }
    }

    /// One that was decided before.
    fn decided(outcome: Outcome, status: &Value) -> Option<Self> {
        let [interim, _] = outcome.conditions();
        let condition = find(status, interim).filter(|condition| condition["status"] == "True")?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        Some(Self { outcome, reason: text("reason"), message: text("message") })
    }

    /// Tells it in the status; whether that was the last word. It is said when the last pod has ended, since 1.31 (`delayTerminalCondition`);
    /// before, nothing is told in between but where the failure policy has decided.
    pub(super) fn enact(&self, status: &mut Value, terminating: i64, ctx: &Ctx) -> bool {
        let delays = control_plane(ctx).at_least(31);
        let [interim, last] = self.outcome.conditions();
        if (delays || self.reason == "PodFailurePolicy") && !has(status, interim) {
            set(status, condition(interim, "True", &self.reason, &self.message, ctx));
        }
        if delays && terminating > 0 {
            return false;
        }
        set(status, condition(last, "True", &self.reason, &self.message, ctx));
        if self.outcome == Outcome::Complete {
            status["completionTime"] = json!(ctx.epoch().seconds(ctx.now));
        }
        true
    }

    /// What is told of it.
    pub(super) fn event(&self) -> (Weight, &str, &str) {
        match self.outcome {
            Outcome::Complete => (Weight::Normal, "Completed", "Job completed"),
            Outcome::Failed => (Weight::Warning, &self.reason, &self.message),
        }
    }
}

impl Job<'_> {
    /// Whether the job has failed, or its end is decided already.
    pub(super) fn failure(&self, ctx: &Ctx) -> Option<End> {
        let decided = End::decided(Outcome::Complete, &self.status)
            .or_else(|| End::decided(Outcome::Failed, &self.status));
        let by_policy = || {
            let mut failed = self.pods.iter().filter(|pod| self.has_failed(pod));
            let message = failed.find_map(|pod| failure_policy::fails_job(self.owner.object, pod))?;
            Some(End::failed("PodFailurePolicy", message))
        };
        let by_limit = || {
            let limit = number(&self.spec()["backoffLimit"]);
            let reached = self.failed > limit || self.restarts() > 0 && self.restarts() >= limit;
            reached
                .then(|| End::failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"))
        };
        let by_deadline = || {
            let over = self.deadline(ctx).is_some_and(|left| left.is_zero());
            over.then(|| End::failed("DeadlineExceeded", "Job was active longer than specified deadline"))
        };
        decided.or_else(by_policy).or_else(by_limit).or_else(by_deadline)
    }

    /// Whether enough pods have succeeded.
    pub(super) fn success(&self, ctx: &Ctx) -> Option<End> {
        let wanted = self.spec()["completions"].as_i64().unwrap_or(1);
        (self.succeeded >= wanted && self.active == 0).then(|| {
            // `JobSuccessPolicy`, since 1.31.
            let told = control_plane(ctx).at_least(31);
            let text = |text: &str| if told { text.to_owned() } else { String::new() };
            End {
                outcome: Outcome::Complete,
                reason: text("CompletionsReached"),
                message: text("Reached expected number of succeeded pods"),
            }
        })
    }

    /// How often containers were restarted, where they are (`pastBackoffLimitOnFailure`).
    fn restarts(&self) -> i64 {
        if self.spec()["template"]["spec"]["restartPolicy"] != "OnFailure" {
            return 0;
        }
        let runs = |pod: &&std::sync::Arc<Value>| {
            ["Running", "Pending"].contains(&pod["status"]["phase"].as_str().unwrap_or_default())
        };
        let lists = ["initContainerStatuses", "containerStatuses"];
        let statuses = self.pods.iter().filter(runs).flat_map(|pod| lists.map(|list| &pod["status"][list]));
        statuses
            .flat_map(|list| list.as_array().into_iter().flatten())
            .map(|status| number(&status["restartCount"]))
            .sum()
    }
}

/// Deletes a job that has ended long enough ago (`ttlafterfinished`), or tells when that will be.
pub(super) fn expire(job: &Value, ctx: &mut Ctx) -> Option<Duration> {
    let wait = Duration::from_secs(job["spec"]["ttlSecondsAfterFinished"].as_u64()?);
    let end = [Outcome::Complete, Outcome::Failed].iter().find_map(|outcome| {
        let [_, last] = outcome.conditions();
        find(&job["status"], last)
    })?;
    let left = wait.saturating_sub(age(&end["lastTransitionTime"], ctx)?);
    if !left.is_zero() {
        return Some(left);
    }
    let how = DeleteOptions { propagation: Some(Propagation::Foreground), ..DeleteOptions::default() };
    // It was there a line ago.
    let _ = registry::delete(ctx, Kind::Job, meta(job, "namespace"), meta(job, "name"), how);
    None
}

/// Whether a status has a condition that is true.
pub(super) fn has(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition["status"] == "True")
}

fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// A condition as it becomes so now.
pub(super) fn condition(kind: &str, status: &str, reason: &str, message: &str, ctx: &Ctx) -> Value {
    let now = ctx.epoch().seconds(ctx.now);
    let mut condition =
        json!({"type": kind, "status": status, "lastProbeTime": now, "lastTransitionTime": now});
    for (field, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            condition[field] = json!(text);
        }
    }
    condition
}

/// Puts a condition in, or in the place of the one of its type.
pub(super) fn set(status: &mut Value, condition: Value) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(all) = status["conditions"].as_array_mut() else { return };
    match all.iter_mut().find(|old| old["type"] == condition["type"]) {
        Some(old) => *old = condition,
        None => all.push(condition),
    }
}
