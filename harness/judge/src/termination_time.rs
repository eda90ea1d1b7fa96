//! The time that the kubelet took to terminate the containers of an evicted pod.

use jiff::Timestamp;

use crate::case_evidence::PodEvidence;
use crate::case_result::Check;
use crate::verdict::{Inconclusive, InconclusiveReason};
use evictlab_case::DurationText;
use evictlab_evidence::ContainerStatusExt;
use evictlab_rules::summary::Sample;

/// Age of a container's statistics on a node that evictlab configures, in seconds.
const STATISTICS_AGE: f64 = 2.0;

/// Bounds on the time from the Evicted event to the end of the pod's last container.
#[derive(Clone, Copy)]
pub(crate) struct TerminationBounds {
    /// Lower bound (`killed-after`).
    pub(crate) after: Option<DurationText>,
    /// Upper bound (`killed-within`).
    pub(crate) within: Option<DurationText>,
}

impl TerminationBounds {
    /// Returns the bounds, if at least one is stated.
    pub(crate) fn new(after: Option<DurationText>, within: Option<DurationText>) -> Option<Self> {
        (after.is_some() || within.is_some()).then_some(Self { after, within })
    }

    /// Returns whether the bounds hold for the time from `earliest` to `latest`, in seconds; `None`
    /// if that depends on the exact time. The lower bound has a tolerance of one second, because
    /// times of the API are in whole seconds, and of the age of the statistics if `earliest` is
    /// theirs.
    fn hold(self, earliest: f64, latest: f64) -> Option<bool> {
        let is_too_late = |seconds: f64| self.within.is_some_and(|most| seconds > most.get().as_secs_f64());
        let is_too_early = |seconds: f64, age: f64| {
            self.after.is_some_and(|least| seconds + age + 1.0 < least.get().as_secs_f64())
        };
        let age = if earliest < latest { STATISTICS_AGE } else { 0.0 };
        let is_violated = is_too_late(earliest) || is_too_early(latest, 0.0);
        let may_be_violated = is_too_late(latest) || is_too_early(earliest, age);
        (is_violated || !may_be_violated).then_some(!is_violated)
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
    samples: &[Sample],
) -> Result<Check, Inconclusive> {
    let why = |cause: &str| format!("when {} was killed is not known: {cause}", pod.name);
    let unknown = |cause: &str| Inconclusive::evidence_lost(why(cause));
    let event = pod.evicted_at().ok_or_else(|| Inconclusive {
        pod_without_event: Some(pod.name.clone()),
        ..unknown("its Evicted event is missing")
    })?;
    let [earliest, latest] = last_container_end(pod, event, samples)
        .ok_or_else(|| unknown("no container's end after the event was reported"))?
        .map(|time| (time.as_millisecond() - event.as_millisecond()).max(0) as f64 / 1000.0);
    let time =
        if earliest == latest { format!("{latest:.1} s") } else { format!("{earliest:.1} to {latest:.1} s") };
    let observed = format!("{time} from the event to the end of the last container");
    let holds = bounds.hold(earliest, latest).ok_or_else(|| {
        let why = why(&format!("{observed}, because the status of a container was lost"));
        Inconclusive::new(InconclusiveReason::StatusLost, why)
    })?;
    Ok(Check { name: format!("{} is killed", pod.name), holds, expected: bounds.describe(), observed })
}

/// Returns the earliest and the latest time at which the pod's last container can have ended after
/// the event. They differ if the status of a container was lost: then the last known end of another
/// one, or the latest statistics of a container that used memory, is the earliest time, and the
/// pod's `ContainersReady` condition with the reason `PodFailed`, which a busy kubelet reports
/// late, is the latest.
fn last_container_end(pod: &PodEvidence<'_>, event: Timestamp, samples: &[Sample]) -> Option<[Timestamp; 2]> {
    if pod.container_statuses().any(|status| status.is_running()) {
        return None;
    }
    let terminated = pod.container_statuses().filter_map(|status| status.terminated());
    let ends: Vec<_> =
        terminated.map(|terminated| terminated.finished_at.as_ref().map(|time| time.0)).collect();
    // A container that ended before the event was not killed by the eviction. Ends are truncated to
    // seconds.
    let known = ends.iter().flatten().max().copied().filter(|end| end.as_second() >= event.as_second());
    if let Some(end) = known.filter(|_| ends.iter().all(Option::is_some)) {
        return Some([end, end]);
    }
    let mut conditions = pod.recorded.conditions();
    let unready = conditions.find(|condition| {
        condition.type_ == "ContainersReady" && condition.reason.as_deref() == Some("PodFailed")
    });
    let latest = unready?.last_transition_time.as_ref()?.0;
    let earliest = last_use_of_memory(pod, samples).max(known).unwrap_or(event);
    let earliest = earliest.clamp(event.min(latest), latest);
    Some([earliest, latest])
}

/// Returns the time of the latest statistics in which a container of the pod uses memory.
fn last_use_of_memory(pod: &PodEvidence<'_>, samples: &[Sample]) -> Option<Timestamp> {
    let uid = pod.recorded.uid();
    let of_pod = samples
        .iter()
        .flat_map(|sample| &sample.pods)
        .filter(|stats| Some(stats.pod_ref.uid.as_str()) == uid);
    let memory = of_pod.flat_map(|stats| &stats.containers).filter_map(|container| container.memory.as_ref());
    memory
        .filter(|memory| memory.working_set_bytes.is_some_and(|bytes| bytes > 0))
        .filter_map(|memory| memory.time)
        .max()
}
