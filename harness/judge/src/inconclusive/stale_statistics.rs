//! Statistics of the kubelet that were older than the usage for which it evicted.

use evictlab_rules::message::{EvictionMessage, NodePressure, container_usage, reportable_containers};
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::summary::{ContainerStats, Sample};
use evictlab_rules::threshold::{Observation, Resource, Signal};
use jiff::{SignedDuration, Timestamp};

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::check::Expectation;
use crate::inconclusive::samples::{last_sample_before, pressure_resource, sampled_at};
use crate::verdict::{Inconclusive, InconclusiveReason};
use evictlab_case::ResourceAmounts;

/// The eviction of a pod for a resource of the node.
struct PressureVictim<'a> {
    pod: &'a PodEvidence<'a>,
    at: Timestamp,
    message: NodePressure,
}

/// Finds a container whose statistics were stale at the eviction. The message omits the container
/// or reports too low a usage, and one of these holds: the Summary shows the expected usage only
/// after the event; the node grew by the difference since the container was measured; the container
/// had just started.
pub(super) fn stale_container_stats(
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let pod = evidence.pod(expectation.evicted().first()?.as_str())?;
    let at = pod.evicted_at()?;
    let EvictionMessage::NodePressure(message) = pod.message()?.parse().ok()? else { return None };
    let victim = PressureVictim { pod, at, message };
    let mut containers = expectation.message()?.containers.iter().flatten();
    let why = containers
        .find_map(|(name, amounts)| describe_stale_container(evidence, &victim, name.as_str(), amounts))?;
    Some(Inconclusive::new(InconclusiveReason::StaleStatistics, why))
}

fn describe_stale_container(
    evidence: &CaseEvidence<'_>,
    victim: &PressureVictim<'_>,
    name: &str,
    expected: &ResourceAmounts,
) -> Option<String> {
    let PressureVictim { pod, at, message } = victim;
    let container =
        reportable_containers(evidence.kubelet, &pod.pod).find(|container| container.name == name)?;
    let request = container.request_or_zero(message.resource.as_str());
    let is_enough = |bytes: i64| is_expected_usage(bytes, &request, expected);
    let named = message.containers.iter().find(|offender| offender.name == name);
    let usage = UsageAround::of(evidence, victim, name);
    if named.is_some_and(|named| is_enough(named.usage.value())) || usage.before.is_some_and(is_enough) {
        return None;
    }
    if named.is_none() && usage.before.is_none() && has_just_started(pod, name, *at) {
        let pod = &pod.name;
        return Some(format!(
            "the kubelet had no statistics of {name} of {pod} at the eviction: the container had just started"
        ));
    }
    let later = match usage.after.filter(|bytes| is_enough(*bytes)) {
        Some(after) => format!(" and {} after it", Quantity::from_bytes(after)),
        None => {
            let grown = growth_since_measured(evidence, victim, name)?;
            if !is_enough(usage.before.unwrap_or_default() + grown) {
                return None;
            }
            let grown = Quantity::from_bytes(grown);
            format!(", and the node used {grown} more since it had measured the container")
        }
    };
    let reported = named.map_or("omits it".to_owned(), |named| format!("reports {}", named.usage));
    let before = usage.before.map_or("nothing".to_owned(), |bytes| Quantity::from_bytes(bytes).to_string());
    Some(format!(
        "the kubelet's statistics of {name} of {} were stale: the message {reported}, the Summary showed {before} \
         before the eviction{later}",
        pod.name
    ))
}

/// The largest usage of a container that Summaries showed before and after an eviction. The usage
/// before a restart is that of another run of the container, and does not count.
struct UsageAround {
    before: Option<i64>,
    after: Option<i64>,
}

impl UsageAround {
    fn of(evidence: &CaseEvidence<'_>, victim: &PressureVictim<'_>, container: &str) -> Self {
        let PressureVictim { pod, at, message } = victim;
        let started = run_start(pod, container, *at);
        let mut usage = Self { before: None, after: None };
        for sample in &evidence.samples {
            let Some(sampled_at) = sampled_at(sample) else { continue };
            let is_of_run = started.is_none_or(|started| sampled_at > started);
            let bytes = usage_in_sample(sample, pod, container, message.resource).filter(|_| is_of_run);
            let side = if sampled_at <= *at { &mut usage.before } else { &mut usage.after };
            *side = bytes.max(*side);
        }
        usage
    }
}

fn is_expected_usage(bytes: i64, request: &Quantity, expected: &ResourceAmounts) -> bool {
    let usage = Quantity::from_bytes(bytes);
    usage > *request && expected.usage.as_ref().is_none_or(|bound| bound.holds(&usage))
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

/// Returns by how much the working set of the node had grown since the measurement of a container
/// that the last Summary before a time contains: until this Summary, or until the eviction, whose
/// message states what was available then: on the node, or in the cgroup of all pods. `None` if the
/// pod was not evicted for memory.
fn growth_since_measured(
    evidence: &CaseEvidence<'_>,
    victim: &PressureVictim<'_>,
    container: &str,
) -> Option<i64> {
    let PressureVictim { pod, at, message } = victim;
    if message.resource != Resource::Memory {
        return None;
    }
    let available = message.threshold.as_ref().map(|clause| &clause.available);
    let of_node = |sample: &Sample| {
        let memory = sample.node.memory.as_ref()?;
        Some((memory.time?, memory.working_set_bytes?))
    };
    let last = last_sample_before(*at, evidence)?;
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

/// Finds a pod that the kubelet ranked by old statistics: when it evicted for memory, the usage of
/// the pod's cgroup was less than half of that of its containers. The kubelet ranks by the former,
/// and measures the two at different times.
pub(crate) fn stale_pod_ranking(evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    const MIN_DIFFERENCE: i64 = (16 * MIB) as i64;
    let is_for_memory = |pod: &&PodEvidence<'_>| pressure_resource(pod) == Some(Resource::Memory);
    let at = evidence.pods.iter().filter(is_for_memory).filter_map(PodEvidence::evicted_at).min()?;
    let sample = last_sample_before(at, evidence)?;
    evidence.pods.iter().find_map(|pod| {
        let stats = sample.pod(&pod.pod.metadata.uid)?;
        let containers: i64 = stats.containers.iter().filter_map(ContainerStats::working_set).sum();
        let ranked = stats.working_set()?;
        if ranked > containers / 2 || containers - ranked < MIN_DIFFERENCE {
            return None;
        }
        let why = format!(
            "the kubelet's statistics of {} were stale: the kubelet ranked it by {}, when its containers used {}",
            pod.name,
            Quantity::from_bytes(ranked),
            Quantity::from_bytes(containers)
        );
        Some(Inconclusive::new(InconclusiveReason::StaleStatistics, why))
    })
}
