//! Backoff of a job after failed pods (`backoff_utils.go`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::context::SimContext;
use crate::resource::pod_status::ConditionStatus;
use crate::resource::{ObjectExt, PodStatus};

/// Initial and maximum backoff (`DefaultJobPodFailureBackOff`, `MaxJobPodFailureBackOff`).
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Failures since the last success.
    failures: u32,
    last: Option<Timestamp>,
}

/// Failures of jobs, by namespace and name.
#[derive(Debug, Default)]
pub(in crate::controllers::workloads) struct Backoffs(BTreeMap<(String, String), Record>);

impl Backoffs {
    /// Forgets a job.
    pub(in crate::controllers::workloads) fn forget(&mut self, namespace: &str, name: &str) {
        self.0.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// Counts pods that have ended since the last call, and returns the remaining backoff. Failures
    /// that the failure policy ignores count, too.
    pub(super) fn note(
        &mut self,
        namespace: &str,
        name: &str,
        succeeded: &[Arc<Value>],
        failed: &[Arc<Value>],
        ctx: &SimContext,
    ) -> Duration {
        let record = self.0.entry((namespace.to_owned(), name.to_owned())).or_default();
        let success = succeeded.iter().filter_map(|pod| finished(pod)).max();
        if !succeeded.is_empty() {
            *record = Record::default();
        }
        let times: Vec<Timestamp> = failed.iter().filter_map(|pod| finished(pod)).collect();
        let later = times.iter().filter(|time| success.is_none_or(|success| **time > success));
        record.failures += u32::try_from(later.clone().count()).unwrap_or(u32::MAX);
        record.last = later.max().copied().or(record.last);
        record.remaining(ctx)
    }
}

impl Record {
    fn remaining(self, ctx: &SimContext) -> Duration {
        let (Some(last), Some(doublings)) = (self.last, self.failures.checked_sub(1)) else {
            return Duration::ZERO;
        };
        let wait = FIRST.saturating_mul(1 << doublings.min(16)).min(LONGEST);
        let since = ctx.epoch().at(ctx.now).duration_since(last).max(SignedDuration::ZERO);
        wait.saturating_sub(since.unsigned_abs())
    }
}

/// Returns the end time of a pod: of its last container, or when it became unready, was deleted or
/// was created.
fn finished(pod: &Value) -> Option<Timestamp> {
    let status = PodStatus::of(pod);
    let inits = status.init_container_statuses.iter();
    let sidecars = inits.filter(|status| pod.sidecars().any(|sidecar| sidecar == status.name));
    let ends: Option<Vec<Timestamp>> = status
        .container_statuses
        .iter()
        .chain(sidecars)
        .map(|one| one.state.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0))
        .collect();
    let unready = || {
        let ready = status.condition("Ready").filter(|ready| ready.status == ConditionStatus::False)?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    };
    let deleted = || {
        let metadata: ObjectMeta = pod.read("metadata");
        let grace = metadata.deletion_grace_period_seconds.unwrap_or(0);
        metadata.deletion_timestamp?.0.checked_sub(SignedDuration::from_secs(grace)).ok()
    };
    ends.and_then(|ends| ends.into_iter().max()).or_else(unready).or_else(deleted).or_else(|| pod.created())
}
