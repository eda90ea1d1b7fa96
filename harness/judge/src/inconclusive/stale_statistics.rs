//! Statistics of the kubelet that were older than the usage for which it evicted.

use evictlab_rules::message::{EvictionMessage, NodePressure, container_usage, reportable_containers};
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::summary::{ContainerStats, Sample};
use evictlab_rules::threshold::{Observation, Resource, Signal};
use jiff::{SignedDuration, Timestamp};

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::check::Expectation;
use crate::inconclusive::disk::{disk_evictions, disk_usage, free_disk, is_expected_victim};
use crate::inconclusive::samples::{format_bytes, last_sample_before, pressure_resource, sampled_at};
use crate::verdict::{Inconclusive, InconclusiveReason};
use evictlab_case::ResourceAmounts;

/// The eviction of a pod for a resource of the node.
struct PressureVictim<'a> {
    pod: &'a PodEvidence<'a>,
    at: Timestamp,
    message: NodePressure,
}

/// Finds a container that the message omits, or whose usage it reports too low, and whose usage the
/// Summary showed only after the event, or not at all: the last measurement of the container was
/// older than that of the node, which had grown by more since then, or the container had just
/// started.
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
    let request = container.request(message.resource.as_str()).cloned().unwrap_or(Quantity::ZERO);
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
        Some(after) => format!(" and {} after it", format_bytes(after)),
        None => {
            let grown = growth_since_measured(evidence, victim, name)?;
            if !is_enough(usage.before.unwrap_or_default() + grown) {
                return None;
            }
            let grown = format_bytes(grown);
            format!(", and the node used {grown} more since it had measured the container")
        }
    };
    let reported = named.map_or("omits it".to_owned(), |named| format!("reports {}", named.usage));
    let before = usage.before.map_or("nothing".to_owned(), format_bytes);
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
            format_bytes(ranked),
            format_bytes(containers)
        );
        Some(Inconclusive::new(InconclusiveReason::StaleStatistics, why))
    })
}

/// Finds an expected victim that the kubelet ranked by old statistics of its files: another pod was
/// evicted first, whose usage was larger than that of the victim before the eviction and smaller
/// after it, and the node had used more that the statistics of pods did not show. The kubelet
/// measures the files of each pod at another time, and later on a busy host.
pub(super) fn stale_disk_ranking(
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let is_expected = |pod: &PodEvidence<'_>| is_expected_victim(expectation, pod);
    let (at, first) =
        disk_evictions(evidence).min_by_key(|(at, _)| *at).filter(|(_, pod)| !is_expected(pod))?;
    let resource = pressure_resource(first)?;
    let before = last_sample_before(at, evidence)?;
    let ranked = disk_usage(before, first, resource)?;
    let start = evidence.samples.first()?;
    let free = |sample: &Sample| free_disk(sample, resource)[0];
    let pods = |sample: &Sample| {
        evidence.pods.iter().filter_map(|pod| disk_usage(sample, pod, resource)).sum::<i64>()
    };
    let unmeasured = (free(start)? - free(before)?) - (pods(before) - pods(start));
    if unmeasured <= ranked {
        return None;
    }
    evidence.pods.iter().filter(|pod| is_expected(pod)).find_map(|pod| {
        let measured = disk_usage(before, pod, resource).unwrap_or(0);
        let later = evidence.samples.iter().filter_map(|sample| disk_usage(sample, pod, resource)).max()?;
        if measured > ranked || later <= ranked {
            return None;
        }
        let format_amount = |amount: i64| {
            if resource == Resource::Inodes { amount.to_string() } else { format_bytes(amount) }
        };
        let why = format!(
            "the kubelet's statistics of {} were stale: the kubelet ranked it by {}, and {} were used that it had not \
             measured yet; later {}",
            pod.name,
            format_amount(measured),
            format_amount(unmeasured),
            format_amount(later)
        );
        Some(Inconclusive::new(InconclusiveReason::StaleStatistics, why))
    })
}
