//! Why what was seen may not be the kubelet's last word: each doubt with its numbers.

use evictlab_rules::message::{EvictionMessage, candidates, usage};
use evictlab_rules::pod::{ContainerStats, Sample};
use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::{Observation, Resource, Signal, Threshold};
use jiff::{SignedDuration, Timestamp};

use super::Doubt;
use super::expected::Expected;
use super::seen::{PodSeen, Seen, ran};
use crate::case::{self, Case};

type Reason = (Doubt, String);

/// What keeps even an expectation that holds from being a pass.
pub(super) fn of_a_pass(case: &Case, seen: &Seen<'_>) -> Option<Reason> {
    let pressure = case.pressure.as_ref()?;
    if seen.samples.is_empty() {
        return Some((Doubt::EvidenceLost, "no Summary was had from the node".to_owned()));
    }
    // A bound on the pods is no threshold.
    if pressure.by == case::By::KubeReserved {
        return None;
    }
    if seen.pods.iter().any(PodSeen::was_evicted) {
        seen.pods.iter().filter(|pod| pod.was_evicted()).find_map(|pod| without_statistics(pod, seen))
    } else {
        threshold_not_reached(signal(pressure), seen)
    }
}

/// What may explain an expectation that does not hold.
pub(super) fn of_a_failure(case: &Case, expected: &Expected<'_>, seen: &Seen<'_>) -> Option<Reason> {
    let rejected = seen.pods.iter().find_map(|pod| {
        let why = pod.rejected.as_ref()?;
        Some((
            Doubt::RejectedAtAdmission,
            format!("the kubelet did not admit {}: {}", pod.name, why.trim_end()),
        ))
    });
    let gone = || {
        // Steps of a case have pods deleted, and its budget, taints and controllers.
        let pod = seen.pods.iter().find(|pod| pod.gone && !pod.was_evicted() && case.steps.is_empty())?;
        Some((Doubt::EvidenceLost, format!("somebody deleted {}: it was gone at the end", pod.name)))
    };
    rejected
        .or_else(gone)
        // One that is killed again and again waits to be started again, and did start.
        // A case that evicts nobody may be about that very kill.
        .or_else(|| {
            let for_an_eviction = case.pressure.is_some() || !expected.evicted().is_empty();
            seen.pods.iter().filter(|_| for_an_eviction).find_map(killed_for_memory)
        })
        .or_else(|| seen.pods.iter().find_map(never_started))
        .or_else(|| of_a_pass(case, seen))
        .or_else(|| {
            let wanted = expected.evicted().iter().filter_map(|name| seen.pod(name.as_str()));
            wanted.into_iter().find_map(|pod| without_statistics(pod, seen))
        })
        .or_else(|| stats_outrun(expected, seen))
}

fn signal(pressure: &case::Pressure) -> Signal {
    match pressure.signal {
        case::Signal::MemoryAvailable => Signal::MemoryAvailable,
        case::Signal::NodefsAvailable => Signal::NodefsAvailable,
        case::Signal::NodefsInodesFree => Signal::NodefsInodesFree,
        case::Signal::PidAvailable => Signal::PidAvailable,
    }
}

fn threshold_not_reached(signal: Signal, seen: &Seen<'_>) -> Option<Reason> {
    let thresholds: Vec<&Threshold> =
        seen.thresholds.iter().filter(|threshold| threshold.signal == signal).collect();
    let observed = || seen.samples.iter().filter_map(|sample| Observation::of(signal, &sample.node));
    if thresholds.is_empty() {
        let why = format!(
            "no threshold on {signal} is known of the node, so that nobody can say whether it was reached"
        );
        return Some((Doubt::EvidenceLost, why));
    }
    if observed().any(|observation| thresholds.iter().any(|threshold| threshold.is_met(&observation, false)))
    {
        return None;
    }
    let texts: Vec<_> = thresholds.iter().map(|threshold| threshold.amount.to_string()).collect();
    let texts = texts.join(" and ");
    Some(match observed().map(|observation| observation.available).min() {
        Some(least) => {
            let count = seen.samples.len();
            let why = format!("{signal} never fell under {texts}: the least of {count} samples is {least}");
            (Doubt::ThresholdNotReached, why)
        }
        None => (Doubt::EvidenceLost, format!("no sample has {signal}")),
    })
}

/// A container that waits for something that does not come, or a pod of which nothing ever ran.
fn never_started(pod: &PodSeen<'_>) -> Option<Reason> {
    const ON_THE_WAY: [&str; 2] = ["PodInitializing", "ContainerCreating"];
    let stuck = pod.containers().find_map(|status| {
        let waiting = &status["state"]["waiting"];
        let reason = waiting["reason"].as_str().filter(|reason| !ON_THE_WAY.contains(reason))?;
        let message = waiting["message"].as_str().map(|message| format!(" ({message})")).unwrap_or_default();
        Some(format!("{} is in {reason}{message}", status["name"].as_str().unwrap_or_default()))
    });
    let pending = pod.object["status"]["phase"] == "Pending" && !pod.containers().any(ran);
    let why = stuck.or_else(|| pending.then(|| still_pending(pod)))?;
    let told = pod.told.last().map(|event| format!("; {event}")).unwrap_or_default();
    Some((Doubt::PodNeverStarted, format!("{} did not start: {why}{told}", pod.name)))
}

fn still_pending(pod: &PodSeen<'_>) -> String {
    let mut conditions = pod.object["status"]["conditions"].as_array().into_iter().flatten();
    let open =
        conditions.find(|condition| condition["status"] == "False" && condition["message"].is_string());
    let why = open.and_then(|condition| condition["message"].as_str()).unwrap_or("no condition says why");
    format!("it is Pending, {why}")
}

/// A container that ended by SIGKILL before the kubelet evicted its pod, or without its doing so.
fn killed_for_memory(pod: &PodSeen<'_>) -> Option<Reason> {
    let event = pod.events.first().and_then(|event| event.at);
    pod.containers().find_map(|status| {
        [&status["state"]["terminated"], &status["lastState"]["terminated"]].into_iter().find_map(|ended| {
            let end = ended["finishedAt"].as_str()?.parse::<Timestamp>().ok()?;
            let reason = ended["reason"].as_str().unwrap_or_default();
            // Ends are cut to the second; the kubelet's own kill is no OOMKilled.
            let slack = i64::from(reason == "OOMKilled");
            let before = event.is_none_or(|event| end.as_second() < event.as_second() + slack);
            let killed = reason == "OOMKilled" || ended["exitCode"] == 137;
            let unexplained = before && killed && (event.is_some() || pod.status.is_none());
            let name = status["name"].as_str().unwrap_or_default();
            let when = match event {
                Some(event) => {
                    format!("{:.1} s before the kubelet evicted it", event.duration_since(end).as_secs_f64())
                }
                None => "and the kubelet did not evict it".to_owned(),
            };
            let why = || {
                format!(
                    "{name} of {} was killed ({reason}, exit code {}) at {end}, {when}",
                    pod.name, ended["exitCode"]
                )
            };
            unexplained.then(|| (Doubt::KilledForMemory, why()))
        })
    })
}

/// A pod that runs or was evicted, and of which the kubelet had no statistics then: it can rank it, but neither name its containers nor
/// hold it to its limits.
fn without_statistics(pod: &PodSeen<'_>, seen: &Seen<'_>) -> Option<Reason> {
    const RECENT: SignedDuration = SignedDuration::from_secs(5);
    let lives = pod.object["status"]["phase"] == "Running";
    // One of which nothing ever ran has none, and needs none.
    if !pod.was_evicted() && !lives || !pod.ran {
        return None;
    }
    let at = pod.events.first().and_then(|event| event.at);
    let last = seen.samples.iter().filter_map(polled).max()?;
    let until = at.unwrap_or(last);
    let recent = |sample: &&Sample| {
        polled(sample).is_some_and(|polled| polled <= until + RECENT && polled >= until - RECENT)
    };
    let mut around = seen.samples.iter().filter(recent).peekable();
    around.peek()?;
    let listed = around
        .any(|sample| sample.pod(&pod.pod.metadata.uid).is_some_and(|stats| !stats.containers.is_empty()));
    let when = if at.is_some() { "when it evicted it" } else { "at the end" };
    (!listed).then(|| {
        let why =
            format!("the kubelet had no statistics of {} {when}: the Summary did not list it", pod.name);
        (Doubt::EvidenceLost, why)
    })
}

/// The message leaves out a container, or gives too low a figure, that the Summary showed only after the event.
fn stats_outrun(expected: &Expected<'_>, seen: &Seen<'_>) -> Option<Reason> {
    let pod = seen.pod(expected.evicted().first()?.as_str())?;
    let at = pod.events.first()?.at?;
    let EvictionMessage::NodePressure(message) = pod.message()?.parse().ok()? else { return None };
    let resource = message.resource;
    expected.message()?.containers.iter().flatten().find_map(|(name, figures)| {
        let own = candidates(seen.kubelet, &pod.pod).find(|own| own.name == name.as_str())?;
        let request = own.request(resource.as_str()).cloned().unwrap_or(Quantity::ZERO);
        let named = message.containers.iter().find(|it| it.name == name.as_str());
        let enough = |bytes: i64| {
            let usage = Quantity::from_bytes(bytes);
            usage > request && figures.usage.as_ref().is_none_or(|bound| bound.holds(&usage))
        };
        if named.is_some_and(|named| enough(named.usage.value())) {
            return None;
        }
        let figures = |sample: &Sample| Some((polled(sample)?, figure(sample, pod, name.as_str(), resource)?));
        let (before, after): (Vec<_>, Vec<_>) = seen.samples.iter().filter_map(figures).partition(|(polled, _)| *polled <= at);
        let largest = |figures: &[(Timestamp, i64)]| figures.iter().map(|(_, bytes)| *bytes).max();
        let (seen_before, later) = (largest(&before), largest(&after).filter(|bytes| enough(*bytes))?);
        if seen_before.is_some_and(enough) {
            return None;
        }
        let print = |bytes: i64| Quantity::from_bytes(bytes).to_string();
        let said = named.map_or("leaves it out".to_owned(), |named| format!("gives {}", named.usage));
        let then = seen_before.map_or("nothing".to_owned(), print);
        let why = format!(
            "pressure outran the statistics: of {name} of {} the message {said}, the Summary showed {then} until then \
             and {} afterwards",
            pod.name,
            print(later)
        );
        Some((Doubt::StatsOutrun, why))
    })
}

/// The end of the second in which the Summary was made: what is of the event's own second counts as after it.
fn polled(sample: &Sample) -> Option<Timestamp> {
    sample.node.rlimit.as_ref()?.time?.checked_add(SignedDuration::from_secs(1)).ok()
}

fn figure(sample: &Sample, pod: &PodSeen<'_>, container: &str, resource: Resource) -> Option<i64> {
    let stats = sample.pod(&pod.pod.metadata.uid)?;
    let of: &ContainerStats = stats.containers.iter().find(|stats| stats.name == container)?;
    usage(of, resource)
}
