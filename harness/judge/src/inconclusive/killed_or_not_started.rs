//! Containers that were killed before an eviction, or that did not start.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStateTerminated;

use crate::case_evidence::PodEvidence;
use crate::verdict::{Inconclusive, InconclusiveReason};
use evictlab_evidence::ContainerStatusExt;

/// Finds a container that waits for anything but its regular start, also for its next one, or a pod
/// that is `Pending` and in which no container ever ran. A container whose configuration does not
/// exist beside one that ran is the case's intention, and one that waits again after the eviction
/// of its pod is the kubelet's mistake.
pub(super) fn never_started(pod: &PodEvidence<'_>) -> Option<Inconclusive> {
    const REGULAR_REASONS: [&str; 2] = ["PodInitializing", "ContainerCreating"];
    const CONFIG_ERROR: &str = "CreateContainerConfigError";
    let is_regular =
        |reason: &str| REGULAR_REASONS.contains(&reason) || pod.has_run && reason == CONFIG_ERROR;
    // Ends are truncated to seconds.
    let restarts_evicted = |terminated: &ContainerStateTerminated| {
        let end = terminated.finished_at.as_ref().map(|end| end.0.as_second());
        end.is_some_and(|end| pod.evicted_at().is_some_and(|at| end >= at.as_second()))
    };
    let stuck = pod.container_statuses().find_map(|status| {
        let waiting = status.waiting().filter(|_| !status.last_terminated().is_some_and(restarts_evicted))?;
        let reason = waiting.reason.as_deref().filter(|reason| !is_regular(reason))?;
        let message = waiting.message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
        let problem = if status.has_run() { "did not stay up" } else { "did not start" };
        Some(format!("{problem}: {} is in {reason}{message}", status.name))
    });
    let pending =
        pod.recorded.phase() == Some("Pending") && !pod.container_statuses().any(ContainerStatusExt::has_run);
    let problem = stuck.or_else(|| pending.then(|| format!("did not start: {}", describe_pending(pod))))?;
    let warning = pod.warnings.last().map(|event| format!("; {event}")).unwrap_or_default();
    let why = format!("{} {problem}{warning}", pod.name);
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
pub(super) fn killed_before_eviction(pod: &PodEvidence<'_>) -> Option<Inconclusive> {
    pod.container_statuses().find_map(|status| {
        let terminations = [status.terminated(), status.last_terminated()];
        terminations.into_iter().flatten().find_map(|terminated| {
            let why = describe_unexplained_kill(pod, &status.name, terminated)?;
            Some(Inconclusive::new(InconclusiveReason::KilledBeforeEviction, why))
        })
    })
}

fn describe_unexplained_kill(
    pod: &PodEvidence<'_>,
    container: &str,
    terminated: &ContainerStateTerminated,
) -> Option<String> {
    let evicted_at = pod.evicted_at();
    let end = terminated.finished_at.as_ref()?.0;
    let reason = terminated.reason.as_deref().unwrap_or_default();
    let is_oom_kill = reason == "OOMKilled";
    let is_deleted = |at: Timestamp| end.as_second() >= at.as_second();
    if !is_oom_kill && pod.deletion_requested_at.is_some_and(is_deleted) {
        return None;
    }
    // Ends are truncated to seconds. The kubelet's own kill is never reported as OOMKilled.
    let tolerance = i64::from(is_oom_kill);
    let is_before = evicted_at.is_none_or(|at| end.as_second() < at.as_second() + tolerance);
    let is_sigkill = is_oom_kill || terminated.exit_code == 137;
    if !is_before || !is_sigkill || (evicted_at.is_none() && pod.status.is_some()) {
        return None;
    }
    let when = match evicted_at {
        Some(at) => format!("{:.1} s before the kubelet evicted it", at.duration_since(end).as_secs_f64()),
        None => "and the kubelet did not evict it".to_owned(),
    };
    let exit_code = terminated.exit_code;
    Some(format!("{container} of {} was killed ({reason}, exit code {exit_code}) at {end}, {when}", pod.name))
}
