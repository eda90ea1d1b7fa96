//! Backoff of a job after failed pods (`backoff_utils.go`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::context::SimContext;
use crate::resource::{ContainerStatusExt, ObjectExt};

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
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let containers = pod["status"].items("containerStatuses");
    let sidecars = pod["spec"].items("initContainers");
    let sidecars: Vec<&Value> =
        sidecars.filter(|one| one["restartPolicy"] == "Always").map(|one| &one["name"]).collect();
    let inits = pod["status"].items("initContainerStatuses");
    let all = containers.chain(inits.filter(|one| sidecars.contains(&&one["name"])));
    let ends: Option<Vec<Timestamp>> = all.map(|one| time(&one.terminated()?["finishedAt"])).collect();
    let unready = || pod.condition("Ready").filter(|ready| ready["status"] == "False");
    let deleted = || {
        let grace = pod["metadata"].integer("deletionGracePeriodSeconds");
        time(&pod["metadata"]["deletionTimestamp"])?.checked_sub(SignedDuration::from_secs(grace)).ok()
    };
    ends.and_then(|ends| ends.into_iter().max())
        .or_else(|| unready().and_then(|ready| time(&ready["lastTransitionTime"])))
        .or_else(deleted)
        .or_else(|| time(&pod["metadata"]["creationTimestamp"]))
}
