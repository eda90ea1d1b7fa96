//! The time that the kubelet took to terminate the containers of an evicted pod.

use jiff::Timestamp;

use crate::evidence::PodEvidence;
use crate::verdict::{Check, Inconclusive, InconclusiveReason};
use evictlab_case::Duration;
use evictlab_evidence::ContainerStatusExt;

/// Bounds on the time from the Evicted event to the end of the pod's last container.
#[derive(Clone, Copy)]
pub(crate) struct TerminationBounds {
    /// Lower bound (`killed-after`).
    pub(crate) after: Option<Duration>,
    /// Upper bound (`killed-within`).
    pub(crate) within: Option<Duration>,
}

impl TerminationBounds {
    /// Returns the bounds, if at least one is stated.
    pub(crate) fn new(after: Option<Duration>, within: Option<Duration>) -> Option<Self> {
        (after.is_some() || within.is_some()).then_some(Self { after, within })
    }

    /// Reports whether a time in seconds is within the bounds. The API reports the ends of containers
    /// in whole seconds, hence the lower bound has a tolerance of one second.
    fn hold(self, seconds: f64) -> bool {
        self.after.is_none_or(|least| seconds + 1.0 >= least.get().as_secs_f64())
            && self.within.is_none_or(|most| seconds <= most.get().as_secs_f64())
    }

    fn describe(self) -> String {
        let after = self.after.map(|least| format!("after {least} or more"));
        let within = self.within.map(|most| format!("within {most}"));
        after.into_iter().chain(within).collect::<Vec<_>>().join(" and ")
    }
}

/// Checks the bounds.
///
/// # Errors
/// One of the times is unknown.
pub(crate) fn check_termination_time(
    bounds: TerminationBounds,
    pod: &PodEvidence<'_>,
) -> Result<Check, Inconclusive> {
    let unknown = |cause: &str| {
        let why = format!("when {} was killed is not known: {cause}", pod.name);
        Inconclusive { reason: InconclusiveReason::EvidenceLost, why }
    };
    let event = pod.evicted_at().ok_or_else(|| unknown("its Evicted event is missing"))?;
    let end = last_container_end(pod, event)
        .ok_or_else(|| unknown("no container's end after the event was reported"))?;
    let seconds = (end.as_millisecond() - event.as_millisecond()).max(0) as f64 / 1000.0;
    let (expected, holds) = (bounds.describe(), bounds.hold(seconds));
    let observed = format!("{seconds:.1} s from the event to the end of the last container");
    Ok(Check { name: format!("{} is killed", pod.name), holds, expected, observed })
}

/// Returns the end of the pod's last container after the event. If the status of a container was
/// lost, the pod's `ContainersReady` condition with the reason `PodFailed` dates the end.
fn last_container_end(pod: &PodEvidence<'_>, event: Timestamp) -> Option<Timestamp> {
    if pod.container_statuses().any(|status| status.is_running()) {
        return None;
    }
    let terminated = pod.container_statuses().filter_map(|status| status.terminated());
    let ends: Option<Vec<_>> =
        terminated.map(|terminated| terminated.finished_at.as_ref().map(|time| time.0)).collect();
    let last = ends.and_then(|ends| ends.into_iter().max());
    // A container that ended before the event was not killed by the eviction. Ends are truncated to
    // seconds.
    let last = last.filter(|end| end.as_second() >= event.as_second());
    last.or_else(|| {
        let mut conditions = pod.recorded.conditions();
        let unready = conditions.find(|condition| {
            condition.type_ == "ContainersReady" && condition.reason.as_deref() == Some("PodFailed")
        });
        Some(unready?.last_transition_time.as_ref()?.0)
    })
}
