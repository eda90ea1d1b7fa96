//! The time that the kubelet took to terminate the containers of an evicted pod.

use jiff::Timestamp;

use crate::evidence::PodEvidence;
use crate::verdict::{Check, Inconclusive, InconclusiveReason};
use evictlab_case::Duration;

/// A bound on the time from the Evicted event to the end of the pod's last container.
#[derive(Clone, Copy)]
pub(crate) enum TerminationBound {
    /// An upper bound (`killed-within`).
    Within(Duration),
    /// A lower bound (`killed-after`).
    After(Duration),
}

/// Checks the bound. The API reports the ends of containers in whole seconds, hence the lower bound
/// has a tolerance of one second.
///
/// # Errors
/// One of the times is unknown.
pub(crate) fn check_termination_time(
    bound: TerminationBound,
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
    let (expected, holds) = match bound {
        TerminationBound::Within(most) => (format!("within {most}"), seconds <= most.get().as_secs_f64()),
        TerminationBound::After(least) => {
            (format!("after {least} or more"), seconds + 1.0 >= least.get().as_secs_f64())
        }
    };
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
    let ends: Option<Vec<_>> = terminated.map(|terminated| terminated.finished_at()).collect();
    let last = ends.and_then(|ends| ends.into_iter().max());
    // A container that ended before the event was not killed by the eviction. Ends are truncated to
    // seconds.
    let last = last.filter(|end| end.as_second() >= event.as_second());
    last.or_else(|| {
        let mut conditions = pod.view.conditions();
        let unready = conditions.find(|condition| {
            condition.kind() == Some("ContainersReady") && condition.reason() == Some("PodFailed")
        });
        unready?.last_transition_time()
    })
}
