//! End of a job: decision, conditions and event.

use serde_json::{Value, json};

use super::failure_policy;
use super::state::Job;
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::resource::condition::{find, put};
use crate::resource::{EventBody, ObjectExt};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Complete,
    Failed,
}

impl Outcome {
    /// Returns the interim condition and the final one, which is set when all pods have ended.
    fn conditions(self) -> [&'static str; 2] {
        match self {
            Self::Complete => ["SuccessCriteriaMet", "Complete"],
            Self::Failed => ["FailureTarget", "Failed"],
        }
    }
}

/// End of a job, with its reason.
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

    /// Reads the interim condition.
    fn decided(outcome: Outcome, status: &Value) -> Option<Self> {
        let [interim, _] = outcome.conditions();
        let condition = find(status, interim).filter(|condition| condition["status"] == "True")?;
        let text = |field: &str| condition.text(field).to_owned();
        Some(Self { outcome, reason: text("reason"), message: text("message") })
    }

    /// Sets the conditions. Returns whether the final one is set, which waits for terminating pods
    /// since 1.31 (`delayTerminalCondition`). Before, only the failure policy sets the interim
    /// condition.
    pub(super) fn enact(&self, status: &mut Value, terminating: i64, ctx: &SimContext) -> bool {
        let delays = control_plane_version(ctx).at_least(31);
        let [interim, last] = self.outcome.conditions();
        if (delays || self.reason == "PodFailurePolicy") && !has(status, interim) {
            put(status, condition(interim, "True", &self.reason, &self.message, ctx));
        }
        if delays && terminating > 0 {
            return false;
        }
        put(status, condition(last, "True", &self.reason, &self.message, ctx));
        if self.outcome == Outcome::Complete {
            status["completionTime"] = json!(ctx.epoch().seconds(ctx.now));
        }
        true
    }

    /// Returns the event.
    pub(super) fn event(&self) -> EventBody<'_> {
        match self.outcome {
            Outcome::Complete => EventBody::normal("Completed", "Job completed"),
            Outcome::Failed => EventBody::warning(&self.reason, &self.message),
        }
    }
}

impl Job<'_> {
    /// Returns the end if the job has failed or its end was decided before.
    pub(super) fn failure(&self, ctx: &SimContext) -> Option<End> {
        let decided = End::decided(Outcome::Complete, &self.status)
            .or_else(|| End::decided(Outcome::Failed, &self.status));
        let by_policy = || {
            let mut failed = self.pods.iter().filter(|pod| self.has_failed(pod));
            let message = failed.find_map(|pod| failure_policy::fails_job(self.owner.object, pod))?;
            Some(End::failed("PodFailurePolicy", message))
        };
        let by_limit = || {
            let limit = self.spec().integer("backoffLimit");
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

    /// Returns the end if enough pods have succeeded.
    pub(super) fn success(&self, ctx: &SimContext) -> Option<End> {
        let wanted = self.spec()["completions"].as_i64().unwrap_or(1);
        (self.succeeded >= wanted && self.active == 0).then(|| {
            // `JobSuccessPolicy`, since 1.31.
            let has_reason = control_plane_version(ctx).at_least(31);
            let text = |text: &str| if has_reason { text.to_owned() } else { String::new() };
            End {
                outcome: Outcome::Complete,
                reason: text("CompletionsReached"),
                message: text("Reached expected number of succeeded pods"),
            }
        })
    }

    /// Returns the number of container restarts with the policy `OnFailure`
    /// (`pastBackoffLimitOnFailure`).
    fn restarts(&self) -> i64 {
        if self.spec()["template"]["spec"]["restartPolicy"] != "OnFailure" {
            return 0;
        }
        let runs = |pod: &&std::sync::Arc<Value>| ["Running", "Pending"].contains(&pod.phase());
        let lists = ["initContainerStatuses", "containerStatuses"];
        let statuses = self.pods.iter().filter(runs).flat_map(|pod| lists.map(|list| &pod["status"][list]));
        statuses
            .flat_map(|list| list.as_array().into_iter().flatten())
            .map(|status| status.integer("restartCount"))
            .sum()
    }
}

/// Returns whether a status has a condition with status `True`.
pub(super) fn has(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Creates a condition with the current time.
pub(super) fn condition(kind: &str, status: &str, reason: &str, message: &str, ctx: &SimContext) -> Value {
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
