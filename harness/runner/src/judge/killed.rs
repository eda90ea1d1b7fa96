//! How long the kubelet took to end an evicted pod's containers.

use jiff::Timestamp;
use serde_json::Value;

use super::seen::PodSeen;
use super::{Check, Doubt};
use crate::case::Duration;

/// A bound on that time.
#[derive(Clone, Copy)]
pub(super) enum Killed {
    /// At most so long.
    Within(Duration),
    /// At least so long.
    After(Duration),
}

/// Checks the bound. Ends have whole seconds, so that a second is given in the kubelet's favour.
///
/// # Errors
/// Where the times are not known.
pub(super) fn check(bound: Killed, pod: &PodSeen<'_>) -> Result<Check, (Doubt, String)> {
    let lost =
        |what: &str| (Doubt::EvidenceLost, format!("when {} was killed is not known: {what}", pod.name));
    let event =
        pod.events.first().and_then(|event| event.at).ok_or_else(|| lost("its Evicted event is missing"))?;
    let end = end(pod, event).ok_or_else(|| lost("no container's end after the event was reported"))?;
    let took = (end.as_millisecond() - event.as_millisecond()).max(0) as f64 / 1000.0;
    let (expected, holds) = match bound {
        Killed::Within(most) => (format!("within {most}"), took <= most.get().as_secs_f64()),
        Killed::After(least) => (format!("after {least} or more"), took + 1.0 >= least.get().as_secs_f64()),
    };
    let observed = format!("{took:.1} s from the event to the end of the last container");
    Ok(Check { name: format!("{} is killed", pod.name), holds, expected, observed })
}

/// The end of the last container. Of one whose status was lost only the pod's is known: it is no longer ready.
fn end(pod: &PodSeen<'_>, event: Timestamp) -> Option<Timestamp> {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    if pod.containers().any(|status| !status["state"]["running"].is_null()) {
        return None;
    }
    let terminated = pod.containers().map(|status| &status["state"]["terminated"]).filter(|it| !it.is_null());
    let ends: Option<Vec<_>> = terminated.map(|it| time(&it["finishedAt"])).collect();
    let last = ends.and_then(|ends| ends.into_iter().max());
    // One that ended before the event was not killed for it; ends are cut to the second.
    let last = last.filter(|end| end.as_second() >= event.as_second());
    last.or_else(|| {
        let mut conditions = pod.object["status"]["conditions"].as_array()?.iter();
        let unready = |it: &&Value| it["type"] == "ContainersReady" && it["reason"] == "PodFailed";
        time(&conditions.find(unready)?["lastTransitionTime"])
    })
}
