//! Reasons why the evidence does not suffice for a verdict, each with the figures behind it.

use evictlab_rules::invariant::{EvictedEvent, Invariant};
use evictlab_rules::message::{EvictionMessage, container_usage, reportable_containers};
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::summary::{ContainerStats, Sample};
use evictlab_rules::threshold::{Observation, Resource, Signal, Threshold};
use jiff::{SignedDuration, Timestamp};

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::check::Expectation;
use crate::deletion::deleted_externally;
use crate::invariants::InvariantCheck;
use crate::verdict::{Inconclusive, InconclusiveReason};
use evictlab_case as case;
use evictlab_case::expression::ExpressionError;
use evictlab_case::{Case, Figures};
use evictlab_evidence::{ContainerStatusExt, ObservationEnd, Observations, Scope};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};

/// Returns the reason why an expectation that holds does not decide the case.
pub(crate) fn of_pass(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    deleted_externally(case, evidence)
        .or_else(|| without_pressure(case, evidence))
        .or_else(|| without_start(case, evidence))
}

/// Returns the reason why an observation that ended early does not decide the case, although no
/// check failed. An end of the observation with a known bug may be that nothing changes any more.
pub(crate) fn end_not_reached(
    case: &Case,
    observations: &Observations,
    with_bug: bool,
) -> Option<Inconclusive> {
    let not_reached = |why: String| Inconclusive::new(InconclusiveReason::EndNotReached, why);
    if let Some(step) = &observations.stopped_at {
        return Some(not_reached(format!("a step of the case was not done in time: {step}")));
    }
    let end = observations.ended.as_ref()?;
    let is_accepted = with_bug && !matches!(end, ObservationEnd::Deadline(_));
    let why = end.describe_failure().filter(|_| !is_accepted)?;
    Some(not_reached(match &case.until {
        Some(until) => format!("the end condition never held: {until}; {why}"),
        None => format!("the case ended before its outcome was complete: {why}"),
    }))
}

/// Returns the lost event that explains why a status does not repeat an event: the status and the
/// condition of the pod agree, and the kubelet counted more evictions than events were delivered.
/// `None` if another invariant is violated.
pub(crate) fn lost_event(evidence: &CaseEvidence<'_>, invariants: &[InvariantCheck]) -> Option<Inconclusive> {
    let is_confirmed = |name: &str| {
        evidence.pod(name).is_some_and(|pod| pod.status.is_some() && pod.status == pod.condition)
    };
    let is_explained = |violated: &InvariantCheck| {
        violated.invariant == Invariant::StatusRepeatsAnEvent && is_confirmed(&violated.pod)
    };
    let delivered: usize = evidence.pods.iter().map(|pod| pod.events.len()).sum();
    let counted: u64 = evidence.observations.evictions_counted.values().sum();
    let violated: Vec<_> = invariants.iter().filter(|invariant| !invariant.check.holds).collect();
    let first = violated.first()?;
    if !violated.iter().all(|violated| is_explained(violated)) || counted <= delivered as u64 {
        return None;
    }
    Some(Inconclusive::evidence_lost(format!(
        "an Evicted event of {} was lost: its status and condition agree, and {counted} evictions were counted \
         for {delivered} events",
        first.pod
    )))
}

/// Replaces the reason of a verdict for which evidence is missing by the more specific one: an
/// Evicted event is missing although a later event about the same pod arrived, or that of a
/// rejection, after which the kubelet sends none.
pub(crate) fn specify(cause: Inconclusive, evidence: &CaseEvidence<'_>) -> Inconclusive {
    let is_stated = |pod: &PodEvidence<'_>| cause.pod_without_event.as_ref() == Some(&pod.name);
    let is_missing = |pod: &PodEvidence<'_>| {
        is_stated(pod) && (pod.lacks_event() && pod.was_killed || pod.lacks_rejection_event)
    };
    let is_complete = evidence.observations.missing.is_empty();
    let is_specific = cause.reason == InconclusiveReason::EvidenceLost
        && is_complete
        && evidence.pods.iter().any(is_missing);
    let reason = if is_specific { InconclusiveReason::EventMissing } else { cause.reason };
    Inconclusive { reason, ..cause }
}

/// Returns the reason why a case whose trigger was never observed is not decided: the cause, if a
/// pod did not run at all.
///
/// # Errors
/// The trigger exceeds the cost limit, or cannot be compiled.
pub(crate) fn trigger_not_observed(
    case: &Case,
    evidence: &CaseEvidence<'_>,
) -> Result<Option<Inconclusive>, ExpressionError> {
    let Some(trigger) = &case.trigger else { return Ok(None) };
    let observations = evidence.observations;
    if observations.trigger_observed || trigger.holds(&Scope::of(observations))? {
        return Ok(None);
    }
    let without_trigger = || {
        let why = format!("the trigger of the case was never observed: {trigger}");
        Inconclusive::new(InconclusiveReason::TriggerNotObserved, why)
    };
    let cause = not_admitted(case, evidence).or_else(|| evidence.pods.iter().find_map(never_started));
    Ok(Some(cause.unwrap_or_else(without_trigger)))
}

/// Returns the reason why a case that waits for nothing is not decided: a pod that did not run
/// could not be evicted.
fn without_start(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    case.waits_for_nothing().then(|| evidence.pods.iter().find_map(never_started))?
}

/// Returns the reason why a case with pressure does not have a verdict: no evidence of pressure.
fn without_pressure(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let pressure = case.pressure.as_ref()?;
    if evidence.samples.is_empty() {
        return Some(Inconclusive::evidence_lost("the node returned no Summary"));
    }
    // A reservation limits the pods' cgroup and does not set a threshold.
    if pressure.by == case::PressureMechanism::KubeReserved {
        return None;
    }
    let mut evicted = evidence.pods.iter().filter(|pod| pod.was_evicted()).peekable();
    if evicted.peek().is_some() {
        evicted
            .filter(|pod| !is_to_be_rejected(case, &pod.name))
            .find_map(|pod| missing_statistics(pod, evidence))
    } else if has_pressure_eviction(pressure.signal.resource(), evidence) {
        // Of a pod that a controller made. It may have ended the pressure between two samples.
        None
    } else {
        threshold_not_reached(pressure.signal.eviction_signal(), evidence)
    }
}

/// Returns a reason outside of the kubelet that explains why an expectation does not hold.
pub(crate) fn of_failure(
    case: &Case,
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let pods = || evidence.pods.iter();
    // A case without evictions may be about the OOM kill itself.
    let expects_eviction =
        (case.pressure.is_some() || !expectation.evicted().is_empty()) && case.expect.oom_killed.is_none();
    let expected = || expectation.evicted().iter().filter_map(|name| evidence.pod(name.as_str()));
    evidence
        .undecodable_pod()
        .or_else(|| not_admitted(case, evidence))
        .or_else(|| deleted_externally(case, evidence))
        // Before `never_started`: an OOM-killed container may wait for its next start.
        .or_else(|| pods().filter(|_| expects_eviction).find_map(killed_for_memory))
        .or_else(|| pods().find_map(never_started))
        .or_else(|| of_pass(case, evidence))
        .or_else(|| expected().find_map(|pod| missing_statistics(pod, evidence)))
        .or_else(|| unmeasured_victim(case, evidence))
        .or_else(|| stats_outrun(expectation, evidence))
        .or_else(|| ranking_outrun(evidence))
        .or_else(|| disk_ranking_outrun(expectation, evidence))
        .or_else(|| reclaim_pending(expectation, evidence))
        .or_else(|| pressure_ended(case, expectation, evidence))
        .or_else(|| unlisted_pod(case, evidence))
}

/// Finds a pod that the kubelet rejected, in a case that is not about admission.
fn not_admitted(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let mut pods = evidence.pods.iter().filter(|_| case.expect.rejected.is_none());
    pods.find_map(|pod| {
        let cause = pod.admission_rejection.as_ref()?.trim_end();
        let why = format!("the kubelet did not admit {}: {cause}", pod.name);
        Some(Inconclusive::new(InconclusiveReason::RejectedAtAdmission, why))
    })
}

/// Reports whether the kubelet evicted any pod because the node was low on the resource.
fn has_pressure_eviction(resource: Resource, evidence: &CaseEvidence<'_>) -> bool {
    let is_of_resource = |event: &EvictedEvent| match event.message.parse() {
        Ok(EvictionMessage::NodePressure(pressure)) => pressure.resource == resource,
        _ => false,
    };
    evidence.evictions.iter().any(is_of_resource)
}

fn threshold_not_reached(signal: Signal, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let thresholds: Vec<&Threshold> =
        evidence.thresholds.iter().filter(|threshold| threshold.signal == signal).collect();
    if thresholds.is_empty() {
        return Some(Inconclusive::evidence_lost(format!("the node's threshold on {signal} is not known")));
    }
    let samples = &evidence.samples;
    let observed = || samples.iter().filter_map(|sample| Observation::from_node_stats(signal, &sample.node));
    let is_met = |observation| thresholds.iter().any(|threshold| threshold.is_met(&observation, false));
    if observed().any(is_met) {
        return None;
    }
    let values: Vec<_> = thresholds.iter().map(|threshold| threshold.value.to_string()).collect();
    let values = values.join(" and ");
    Some(match observed().map(|observation| observation.available).min() {
        Some(least) => {
            let count = samples.len();
            let why = format!("{signal} never fell below {values}: the least of {count} samples is {least}");
            Inconclusive::new(InconclusiveReason::ThresholdNotReached, why)
        }
        None => Inconclusive::evidence_lost(format!("no sample has {signal}")),
    })
}

/// Finds a container that waits for anything but its regular start, or a pod that is `Pending` and
/// in which no container ever ran. A container whose configuration does not exist beside one that
/// ran is the case's intention.
fn never_started(pod: &PodEvidence<'_>) -> Option<Inconclusive> {
    const REGULAR_REASONS: [&str; 2] = ["PodInitializing", "ContainerCreating"];
    const CONFIG_ERROR: &str = "CreateContainerConfigError";
    let is_regular =
        |reason: &str| REGULAR_REASONS.contains(&reason) || pod.has_run && reason == CONFIG_ERROR;
    let stuck = pod.container_statuses().find_map(|status| {
        let waiting = status.waiting()?;
        let reason = waiting.reason.as_deref().filter(|reason| !is_regular(reason))?;
        let message = waiting.message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
        Some(format!("{} is in {reason}{message}", status.name))
    });
    let pending =
        pod.recorded.phase() == Some("Pending") && !pod.container_statuses().any(ContainerStatusExt::has_run);
    let cause = stuck.or_else(|| pending.then(|| describe_pending(pod)))?;
    let warning = pod.warnings.last().map(|event| format!("; {event}")).unwrap_or_default();
    let why = format!("{} did not start: {cause}{warning}", pod.name);
    Some(Inconclusive::new(InconclusiveReason::PodNeverStarted, why))
}

fn describe_pending(pod: &PodEvidence<'_>) -> String {
    let mut messages = pod
        .recorded
        .conditions()
        .filter_map(|condition| condition.message.as_deref().filter(|_| condition.status == "False"));
    format!("it is Pending, {}", messages.next().unwrap_or("and no condition has a reason"))
}

/// Finds a container that was terminated by SIGKILL before the kubelet evicted its pod, or in a pod
/// that the kubelet did not evict.
fn killed_for_memory(pod: &PodEvidence<'_>) -> Option<Inconclusive> {
    pod.container_statuses().find_map(|status| {
        let terminations = [status.terminated(), status.last_terminated()];
        terminations.into_iter().flatten().find_map(|terminated| {
            let why = describe_unexplained_kill(pod, &status.name, terminated)?;
            Some(Inconclusive::new(InconclusiveReason::KilledForMemory, why))
        })
    })
}

fn describe_unexplained_kill(
    pod: &PodEvidence<'_>,
    container: &str,
    terminated: &ContainerStateTerminated,
) -> Option<String> {
    let event = pod.evicted_at();
    let end = terminated.finished_at.as_ref()?.0;
    let reason = terminated.reason.as_deref().unwrap_or_default();
    let is_oom_kill = reason == "OOMKilled";
    let is_deleted = |at: Timestamp| end.as_second() >= at.as_second();
    if !is_oom_kill && pod.deletion_requested_at.is_some_and(is_deleted) {
        return None;
    }
    // Ends are truncated to seconds. The kubelet's own kill is never reported as OOMKilled.
    let tolerance = i64::from(is_oom_kill);
    let is_before = event.is_none_or(|event| end.as_second() < event.as_second() + tolerance);
    let is_sigkill = is_oom_kill || terminated.exit_code == 137;
    if !is_before || !is_sigkill || (event.is_none() && pod.status.is_some()) {
        return None;
    }
    let when = match event {
        Some(event) => {
            format!("{:.1} s before the kubelet evicted it", event.duration_since(end).as_secs_f64())
        }
        None => "and the kubelet did not evict it".to_owned(),
    };
    let exit_code = terminated.exit_code;
    Some(format!("{container} of {} was killed ({reason}, exit code {exit_code}) at {end}, {when}", pod.name))
}

/// Finds a pod that was evicted or runs, and that the Summary did not list at that time. Without
/// statistics the kubelet ranks the pod, but neither names its containers nor enforces its limits.
fn missing_statistics(pod: &PodEvidence<'_>, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let is_running = pod.recorded.phase() == Some("Running");
    if !pod.was_evicted() && !is_running || !pod.has_run {
        return None;
    }
    let event = pod.evicted_at();
    let last = evidence.samples.iter().filter_map(sampled_at).max()?;
    let at = event.unwrap_or(last);
    let uid = &pod.pod.metadata.uid;
    let is_unlisted = if pod.lacks_event() {
        // The time of an eviction without an event is not known.
        !evidence.samples.iter().any(|sample| lists_containers(sample, uid))
    } else {
        is_unlisted_at(at, uid, evidence)
    };
    let when = if event.is_some() { "when it evicted it" } else { "at the end" };
    is_unlisted.then(|| not_measured(&pod.name, when))
}

/// Finds a pod, of the case or of a controller, that was evicted under pressure and that the last
/// Summary before did not list: the kubelet evicts pods that it does not measure first, and does
/// not name their containers. A pod that still terminates is evicted again, without statistics: its
/// first eviction counts.
fn unmeasured_victim(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let of_case = |event: &EvictedEvent| evidence.pods.iter().find(|pod| pod.pod.metadata.uid == event.uid);
    let is_unmeasured = |event: &&EvictedEvent| {
        let is_again = |other: &EvictedEvent| other.uid == event.uid && other.at < event.at;
        let was_admitted = of_case(event).is_some_and(|pod| is_to_be_rejected(case, &pod.name));
        if was_admitted || evidence.evictions.iter().any(is_again) {
            return false;
        }
        let is_for_pressure = matches!(event.message.parse(), Ok(EvictionMessage::NodePressure(_)));
        let is_before = |sample: &&Sample| sampled_at(sample).is_some_and(|time| Some(time) <= event.at);
        let last = evidence.samples.iter().rfind(is_before);
        is_for_pressure && last.is_some_and(|sample| !lists_containers(sample, &event.uid))
    };
    let event = evidence.evictions.iter().find(is_unmeasured)?;
    let name = of_case(event).map_or(&event.pod, |pod| &pod.name);
    Some(not_measured(name, "when it evicted it"))
}

/// Reports whether a case expects that the kubelet rejects a pod at admission. Missing statistics
/// do not explain why such a pod ran and was evicted.
fn is_to_be_rejected(case: &Case, pod: &str) -> bool {
    case.expect.rejected.iter().flatten().any(|name| name.as_str() == pod)
}

/// Reports whether there are samples of about a time, and none lists the containers of a pod.
fn is_unlisted_at(at: Timestamp, uid: &str, evidence: &CaseEvidence<'_>) -> bool {
    const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);
    let is_close = |sample: &&Sample| {
        sampled_at(sample).is_some_and(|time| time <= at + TOLERANCE && time >= at - TOLERANCE)
    };
    let mut samples = evidence.samples.iter().filter(is_close).peekable();
    samples.peek().is_some() && !samples.any(|sample| lists_containers(sample, uid))
}

fn lists_containers(sample: &Sample, uid: &str) -> bool {
    sample.pod(uid).is_some_and(|pod| !pod.containers.is_empty())
}

fn not_measured(pod: &str, when: &str) -> Inconclusive {
    Inconclusive::evidence_lost(format!(
        "the kubelet had no statistics of {pod} {when}: the Summary did not list it"
    ))
}

/// Finds a pod, of the case or of a controller, with a running container that the last Summaries do
/// not list. What the kubelet does not measure it neither evicts nor reports. A case about the
/// Summary itself fails.
fn unlisted_pod(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    /// Longer than a kubelet takes to measure a new container.
    const MEASURING_TIME: SignedDuration = SignedDuration::from_secs(15);
    const LAST_SAMPLES: SignedDuration = SignedDuration::from_secs(5);
    if !case.expect.summary.is_empty() {
        return None;
    }
    let last = evidence.samples.iter().filter_map(sampled_at).max()?;
    let is_last = |sample: &&Sample| sampled_at(sample).is_some_and(|at| at >= last - LAST_SAMPLES);
    let is_old = |status: &ContainerStatus| {
        let started = status.state.as_ref().and_then(|state| state.running.as_ref()?.started_at.as_ref());
        started.is_some_and(|started| started.0 <= last - MEASURING_TIME)
    };
    let pods = evidence.observations.pods_final.iter().filter(|pod| !pod.is_mirror_pod());
    let mut running = pods.filter(|pod| pod.container_statuses().any(is_old));
    let pod = running.find(|pod| {
        let uid = pod.uid().unwrap_or_default();
        !evidence.samples.iter().filter(is_last).any(|sample| lists_containers(sample, uid))
    })?;
    Some(not_measured(pod.case_name(), "at the end"))
}

/// Returns the start of the run of a container at a time: the last start until then. A container
/// that had not started yet has its first start.
fn run_start(pod: &PodEvidence<'_>, container: &str, at: Timestamp) -> Option<Timestamp> {
    let until = pod.starts(container).filter(|start| *start <= at).max();
    until.or_else(|| pod.starts(container).min())
}

/// Returns whether a container had started, or restarted, so shortly before `at` that the kubelet
/// may not have measured it.
fn has_just_started(pod: &PodEvidence<'_>, container: &str, at: Timestamp) -> bool {
    const FIRST_MEASUREMENT: SignedDuration = SignedDuration::from_secs(3);
    run_start(pod, container, at).is_some_and(|started| started + FIRST_MEASUREMENT >= at)
}

/// Finds a container that the message omits, or whose usage it reports too low, and whose usage the
/// Summary showed only after the event, or not at all: the last measurement of the container was
/// older than that of the node, which had grown by more since then, or the container had just
/// started.
fn stats_outrun(expectation: &Expectation<'_>, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let pod = evidence.pod(expectation.evicted().first()?.as_str())?;
    let at = pod.evicted_at()?;
    let EvictionMessage::NodePressure(message) = pod.message()?.parse().ok()? else { return None };
    let available = message.threshold.as_ref().map(|clause| &clause.available);
    expectation.message()?.containers.iter().flatten().find_map(|(name, figures)| {
        let container = reportable_containers(evidence.kubelet, &pod.pod)
            .find(|container| container.name == name.as_str())?;
        let request = container.request(message.resource.as_str()).cloned().unwrap_or(Quantity::ZERO);
        let named = message.containers.iter().find(|offender| offender.name == name.as_str());
        let is_enough = |bytes: i64| is_expected_usage(bytes, &request, figures);
        if named.is_some_and(|named| is_enough(named.usage.value())) {
            return None;
        }
        // The usage before a restart is that of another run.
        let started = run_start(pod, name.as_str(), at);
        let usages = evidence.samples.iter().filter_map(|sample| {
            let sampled_at = sampled_at(sample).filter(|time| started.is_none_or(|started| *time > started))?;
            Some((sampled_at, usage_in_sample(sample, pod, name.as_str(), message.resource)?))
        });
        let (before, after): (Vec<_>, Vec<_>) = usages.partition(|(sampled_at, _)| *sampled_at <= at);
        let largest = |usages: &[(Timestamp, i64)]| usages.iter().map(|(_, bytes)| *bytes).max();
        let (before, after) = (largest(&before), largest(&after).filter(|bytes| is_enough(*bytes)));
        if before.is_some_and(is_enough) {
            return None;
        }
        if named.is_none() && before.is_none() && has_just_started(pod, name.as_str(), at) {
            let why = format!(
                "pressure outran the start of {name} of {}: it had no statistics at the eviction",
                pod.name
            );
            return Some(Inconclusive::new(InconclusiveReason::StatsOutrun, why));
        }
        let print = |bytes: i64| Quantity::from_bytes(bytes).to_string();
        let later = match after {
            Some(after) => format!(" and {} after it", print(after)),
            None => {
                let grown = (message.resource == Resource::Memory)
                    .then(|| growth_since_measured(evidence, pod, name.as_str(), at, available))??;
                if !is_enough(before.unwrap_or_default() + grown) {
                    return None;
                }
                format!(", and the node used {} more since it had measured the container", print(grown))
            }
        };
        let reported = named.map_or("omits it".to_owned(), |named| format!("reports {}", named.usage));
        let before = before.map_or("nothing".to_owned(), print);
        let why = format!(
            "pressure outran the statistics of {name} of {}: the message {reported}, the Summary showed {before} \
             before the eviction{later}",
            pod.name
        );
        Some(Inconclusive::new(InconclusiveReason::StatsOutrun, why))
    })
}

/// Finds a pod that the kubelet ranked by old statistics: when it evicted for memory, the usage of
/// the pod's cgroup was less than half of that of its containers. The kubelet ranks by the former,
/// and measures the two at different times.
pub(crate) fn ranking_outrun(evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    const MIN_DIFFERENCE: i64 = (16 * MIB) as i64;
    let is_for_memory = |pod: &&PodEvidence<'_>| starved_resource(pod) == Some(Resource::Memory);
    let at = evidence.pods.iter().filter(is_for_memory).filter_map(PodEvidence::evicted_at).min()?;
    let sample = last_sample_before(at, evidence)?;
    evidence.pods.iter().find_map(|pod| {
        let stats = sample.pod(&pod.pod.metadata.uid)?;
        let containers: i64 = stats.containers.iter().filter_map(ContainerStats::working_set).sum();
        let ranked = stats.working_set()?;
        if ranked > containers / 2 || containers - ranked < MIN_DIFFERENCE {
            return None;
        }
        let print = |bytes: i64| Quantity::from_bytes(bytes).to_string();
        let why = format!(
            "pressure outran the statistics of {}: the kubelet ranked it by {}, when its containers used {}",
            pod.name,
            print(ranked),
            print(containers)
        );
        Some(Inconclusive::new(InconclusiveReason::StatsOutrun, why))
    })
}

/// Finds an expected victim that the kubelet ranked by old statistics of its files: another pod was
/// evicted first, whose usage was larger than that of the victim before the eviction and smaller
/// after it, and the node had used more that the statistics of pods did not show. The kubelet
/// measures the files of each pod at another time, and later on a busy host.
fn disk_ranking_outrun(expectation: &Expectation<'_>, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let is_expected = |pod: &PodEvidence<'_>| is_expected_victim(expectation, pod);
    let (at, first) =
        disk_evictions(evidence).min_by_key(|(at, _)| *at).filter(|(_, pod)| !is_expected(pod))?;
    let starved = starved_resource(first)?;
    let before = last_sample_before(at, evidence)?;
    let ranked = disk_usage(before, first, starved)?;
    let start = evidence.samples.first()?;
    let free = |sample: &Sample| free_disk(sample, starved)[0];
    let pods = |sample: &Sample| {
        evidence.pods.iter().filter_map(|pod| disk_usage(sample, pod, starved)).sum::<i64>()
    };
    let unmeasured = (free(start)? - free(before)?) - (pods(before) - pods(start));
    if unmeasured <= ranked {
        return None;
    }
    evidence.pods.iter().filter(|pod| is_expected(pod)).find_map(|pod| {
        let measured = disk_usage(before, pod, starved).unwrap_or(0);
        let later = evidence.samples.iter().filter_map(|sample| disk_usage(sample, pod, starved)).max()?;
        if measured > ranked || later <= ranked {
            return None;
        }
        let print = |amount: i64| match starved {
            Resource::Inodes => amount.to_string(),
            _ => Quantity::from_bytes(amount).to_string(),
        };
        let why = format!(
            "pressure outran the statistics of {}: the kubelet ranked it by {}, and {} were used that it had not \
             measured yet; later {}",
            pod.name,
            print(measured),
            print(unmeasured),
            print(later)
        );
        Some(Inconclusive::new(InconclusiveReason::StatsOutrun, why))
    })
}

/// Returns the pods that were evicted for bytes or inodes, with the times of their evictions.
fn disk_evictions<'a>(
    evidence: &'a CaseEvidence<'_>,
) -> impl Iterator<Item = (Timestamp, &'a PodEvidence<'a>)> {
    let is_for_disk = |pod: &&PodEvidence<'_>| {
        matches!(starved_resource(pod), Some(Resource::EphemeralStorage | Resource::Inodes))
    };
    evidence.pods.iter().filter(is_for_disk).filter_map(|pod| Some((pod.evicted_at()?, pod)))
}

/// Returns whether the case expects the eviction of a pod.
fn is_expected_victim(expectation: &Expectation<'_>, pod: &PodEvidence<'_>) -> bool {
    expectation.evicted().iter().any(|name| name.as_str() == pod.name)
}

/// Returns the bytes, or inodes, of all files of a pod.
fn disk_usage(sample: &Sample, pod: &PodEvidence<'_>, resource: Resource) -> Option<i64> {
    let files = sample.pod(&pod.pod.metadata.uid)?.ephemeral_storage.as_ref()?;
    match resource {
        Resource::Inodes => files.inodes_used,
        _ => files.used_bytes,
    }
}

/// Finds a pod that the kubelet evicted for a disk before the data of the expected victim were
/// deleted: its statistics showed no more free bytes and inodes than at the first eviction. The
/// runtime deletes data in the background, and the kubelet does not wait for it.
fn reclaim_pending(expectation: &Expectation<'_>, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let is_expected = |pod: &PodEvidence<'_>| is_expected_victim(expectation, pod);
    let (first_at, first) =
        disk_evictions(evidence).min_by_key(|(at, _)| *at).filter(|(_, pod)| is_expected(pod))?;
    let (at, other) = disk_evictions(evidence)
        .filter(|(at, pod)| *at > first_at && !is_expected(pod))
        .min_by_key(|(at, _)| *at)?;
    let starved = starved_resource(first)?;
    let free_at = |at| last_sample_before(at, evidence).map(|sample| free_disk(sample, starved));
    let (earlier, later) = (free_at(first_at)?, free_at(at)?);
    if earlier.into_iter().zip(later).any(|(earlier, later)| later > earlier) {
        return None;
    }
    let why =
        format!("the data of {} were not deleted yet when the kubelet evicted {}", first.name, other.name);
    Some(Inconclusive::new(InconclusiveReason::ReclaimPending, why))
}

/// Returns the free bytes, or inodes, of nodefs and of imagefs.
fn free_disk(sample: &Sample, resource: Resource) -> [Option<i64>; 2] {
    let imagefs = sample.node.runtime.as_ref().and_then(|runtime| runtime.image_fs.as_ref());
    [sample.node.fs.as_ref(), imagefs].map(|fs| match resource {
        Resource::Inodes => fs?.inodes_free,
        _ => fs?.available_bytes,
    })
}

/// Returns the greatest decrease of the bytes that images and writable layers take.
fn freed_imagefs_bytes(samples: &[Sample]) -> i64 {
    let used = |sample: &Sample| sample.node.runtime.as_ref()?.image_fs.as_ref()?.used_bytes;
    let mut most = 0;
    let mut freed = 0;
    for used in samples.iter().filter_map(used) {
        most = used.max(most);
        freed = freed.max(most - used);
    }
    freed
}

/// Finds a pressure on a disk that ended before any pod was evicted: the kubelet has deleted unused
/// images or dead containers, or something else has freed the disk. A kubelet that evicts nobody
/// leaves the pods their data, and the pressure lasts; it also lasts while less than the minimum
/// reclaim is available beyond a threshold that was crossed.
fn pressure_ended(
    case: &Case,
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let signal = case.pressure.as_ref()?.signal.eviction_signal();
    let is_on_disk = matches!(signal.resource(), Resource::EphemeralStorage | Resource::Inodes);
    let has_eviction = !evidence.evictions.is_empty() || evidence.pods.iter().any(PodEvidence::was_evicted);
    if !is_on_disk || expectation.evicted().is_empty() || has_eviction {
        return None;
    }
    let observations: Vec<Observation> = evidence
        .samples
        .iter()
        .filter_map(|sample| Observation::from_node_stats(signal, &sample.node))
        .collect();
    let last = observations.last()?;
    let lasts = |threshold: &Threshold| {
        let was_crossed = observations.iter().any(|observed| threshold.is_met(observed, false));
        threshold.is_met(last, was_crossed)
    };
    let mut thresholds = evidence.thresholds.iter().filter(|threshold| threshold.signal == signal);
    if thresholds.any(lasts) {
        return None;
    }
    let ended =
        format!("the pressure on {signal} ended before any eviction: at last it was {}", last.available);
    let freed = freed_imagefs_bytes(&evidence.samples);
    if freed < MIB as i64 {
        return Some(Inconclusive::new(InconclusiveReason::ThresholdNotReached, ended));
    }
    let why = format!("{ended}; images or dead containers of {} were deleted", Quantity::from_bytes(freed));
    Some(Inconclusive::new(InconclusiveReason::ReclaimSufficed, why))
}

/// Returns the resource for which the kubelet evicted a pod, if its message states one.
fn starved_resource(pod: &PodEvidence<'_>) -> Option<Resource> {
    match pod.message()?.parse().ok()? {
        EvictionMessage::NodePressure(message) => Some(message.resource),
        _ => None,
    }
}

fn is_expected_usage(bytes: i64, request: &Quantity, figures: &Figures) -> bool {
    let usage = Quantity::from_bytes(bytes);
    usage > *request && figures.usage.as_ref().is_none_or(|bound| bound.holds(&usage))
}

/// Returns by how much the working set of the node had grown since the measurement of a container
/// that the last Summary before a time contains: until this Summary, or until the eviction, whose
/// message states what was available then. That may be of the node or of the cgroup of all pods.
fn growth_since_measured(
    evidence: &CaseEvidence<'_>,
    pod: &PodEvidence<'_>,
    container: &str,
    at: Timestamp,
    available: Option<&Quantity>,
) -> Option<i64> {
    let of_node = |sample: &Sample| {
        let memory = sample.node.memory.as_ref()?;
        Some((memory.time?, memory.working_set_bytes?))
    };
    let last = last_sample_before(at, evidence)?;
    let stats = last.pod(&pod.pod.metadata.uid)?.containers.iter().find(|stats| stats.name == container)?;
    let measured = stats.memory.as_ref()?.time?;
    let then =
        evidence.samples.iter().rfind(|sample| of_node(sample).is_some_and(|(time, _)| time <= measured))?;
    let until_last = of_node(last)?.1 - of_node(then)?.1;
    let until_eviction = [Signal::MemoryAvailable, Signal::AllocatableMemoryAvailable]
        .into_iter()
        .filter_map(|signal| Observation::from_node_stats(signal, &then.node))
        .filter_map(|observed| Some((observed.available - available?).value()))
        .filter(|growth| *growth >= 0)
        .min();
    Some(until_last.max(until_eviction.unwrap_or(0)))
}

/// Returns the last Summary that was made before a time.
fn last_sample_before<'a>(at: Timestamp, evidence: &'a CaseEvidence<'_>) -> Option<&'a Sample> {
    evidence.samples.iter().rfind(|sample| sampled_at(sample).is_some_and(|sampled_at| sampled_at <= at))
}

/// Returns the end of the second in which the Summary was made, so that a Summary of the event's
/// own second counts as later.
fn sampled_at(sample: &Sample) -> Option<Timestamp> {
    sample.node.rlimit.as_ref()?.time?.checked_add(SignedDuration::from_secs(1)).ok()
}

fn usage_in_sample(
    sample: &Sample,
    pod: &PodEvidence<'_>,
    container: &str,
    resource: Resource,
) -> Option<i64> {
    let pod = sample.pod(&pod.pod.metadata.uid)?;
    container_usage(pod.containers.iter().find(|stats| stats.name == container)?, resource)
}
