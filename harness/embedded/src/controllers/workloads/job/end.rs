//! End of a job: decision, conditions and event.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};

use super::failure_policy;
use super::state::Job;
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::resource::EventBody;

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
    fn decided(outcome: Outcome, status: &JobStatus) -> Option<Self> {
        let [interim, _] = outcome.conditions();
        let condition = find(status, interim).filter(|condition| condition.status == "True")?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some(Self { outcome, reason: text(&condition.reason), message: text(&condition.message) })
    }

    /// Sets the conditions. Returns whether the final one is set, which waits for terminating pods
    /// since 1.31 (`delayTerminalCondition`). Before, only the failure policy sets the interim
    /// condition.
    pub(super) fn enact(&self, status: &mut JobStatus, terminating: i64, ctx: &SimContext) -> bool {
        let delays = control_plane_version(ctx).at_least(31);
        let [interim, last] = self.outcome.conditions();
        if (delays || self.reason == "PodFailurePolicy")
            && find(status, interim).is_none_or(|condition| condition.status != "True")
        {
            self.put(status, interim, ctx);
        }
        if delays && terminating > 0 {
            return false;
        }
        self.put(status, last, ctx);
        if self.outcome == Outcome::Complete {
            status.completion_time = Some(ctx.epoch().meta_time(ctx.now));
        }
        true
    }

    /// Adds a condition with the status `True`, or replaces the one of its type.
    fn put(&self, status: &mut JobStatus, kind: &str, ctx: &SimContext) {
        let now = Some(ctx.epoch().meta_time(ctx.now));
        let present = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let condition = JobCondition {
            type_: kind.to_owned(),
            status: "True".to_owned(),
            last_probe_time: now.clone(),
            last_transition_time: now,
            reason: present(&self.reason),
            message: present(&self.message),
        };
        let conditions = status.conditions.get_or_insert_default();
        match conditions.iter_mut().find(|old| old.type_ == kind) {
            Some(old) => *old = condition,
            None => conditions.push(condition),
        }
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
    pub(super) fn failure(&self) -> Option<End> {
        let decided = End::decided(Outcome::Complete, &self.status)
            .or_else(|| End::decided(Outcome::Failed, &self.status));
        let by_policy = || {
            let policy = self.spec.pod_failure_policy.as_ref()?;
            let mut failed = self.pods.iter().filter(|pod| self.has_failed(pod));
            let message = failed.find_map(|pod| failure_policy::fails_job(policy, pod))?;
            Some(End::failed("PodFailurePolicy", message))
        };
        let by_limit = || {
            (self.failed > self.spec.backoff_limit)
                .then(|| End::failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"))
        };
        decided.or_else(by_policy).or_else(by_limit)
    }

    /// Returns the end if enough pods have succeeded.
    pub(super) fn success(&self, ctx: &SimContext) -> Option<End> {
        let wanted = self.spec.completions.unwrap_or(1);
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
}

/// Returns the condition of a type.
fn find<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}
