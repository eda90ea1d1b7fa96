//! Pods that the Summary did not list.

use evictlab_rules::EvictedEvent;
use evictlab_rules::message::EvictionMessage;
use evictlab_rules::summary::Sample;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ContainerStatus;

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::inconclusive::samples::sampled_at;
use crate::verdict::Inconclusive;
use evictlab_case::Case;

/// Finds a pod that was evicted or runs, and that the Summary did not list at that time. Without
/// statistics the kubelet ranks the pod, but neither names its containers nor enforces its limits.
pub(super) fn missing_statistics(pod: &PodEvidence<'_>, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let is_running = pod.recorded.phase() == Some("Running");
    if !pod.was_evicted() && !is_running || !pod.has_run {
        return None;
    }
    let evicted_at = pod.evicted_at();
    let last = evidence.samples.iter().filter_map(sampled_at).max()?;
    let at = evicted_at.unwrap_or(last);
    let uid = &pod.pod.metadata.uid;
    let is_unlisted = if pod.lacks_event() {
        // The time of an eviction without an event is not known.
        !evidence.samples.iter().any(|sample| lists_containers(sample, uid))
    } else {
        is_unlisted_at(at, uid, evidence)
    };
    let when = if evicted_at.is_some() { "when it evicted it" } else { "at the end" };
    is_unlisted.then(|| not_measured(&pod.name, when))
}

/// Finds a pod, of the case or of a controller, that was evicted under pressure and that the last
/// Summary before did not list: the kubelet evicts pods that it does not measure first, and does
/// not name their containers. A pod that still terminates is evicted again, without statistics: its
/// first eviction counts.
pub(super) fn unmeasured_victim(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let of_case = |event: &EvictedEvent| evidence.pods.iter().find(|pod| pod.pod.metadata.uid == event.uid);
    let is_unmeasured = |event: &&EvictedEvent| {
        let is_again = |other: &EvictedEvent| other.uid == event.uid && other.at < event.at;
        let is_expected_rejection = of_case(event).is_some_and(|pod| is_to_be_rejected(case, &pod.name));
        if is_expected_rejection || evidence.evictions.iter().any(is_again) {
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

/// Returns whether a case expects that the kubelet rejects a pod at admission. Missing statistics
/// do not explain why such a pod ran and was evicted.
pub(super) fn is_to_be_rejected(case: &Case, pod: &str) -> bool {
    case.expect.rejected.iter().flatten().any(|name| name.as_str() == pod)
}

/// Returns whether there are samples of about a time, and none lists the containers of a pod.
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
/// not list. The kubelet does not evict or report containers without statistics. A case about the
/// Summary itself fails.
pub(super) fn unlisted_pod(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
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
