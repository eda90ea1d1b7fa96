//! Causes other than node-pressure eviction that terminate pods.

use crate::message_text::cut_after;
use crate::objects::{Pod, PodCondition, PodStatus};

/// Explains why a pod was terminated, from its condition, reason, or container statuses; `None` if
/// they show no known cause. See `cases/relatives` and `cases/out-of-memory`.
pub(crate) fn other_cause(pod: &Pod) -> Option<String> {
    let status = &pod.status;
    let mut conditions = status.conditions.iter();
    let disruption = conditions.find(|condition| {
        condition.condition_type.as_deref() == Some("DisruptionTarget")
            && condition.status.as_deref() == Some("True")
    });
    disruption.and_then(by_condition).or_else(|| by_reason(pod)).or_else(|| by_oom_kill(status))
}

fn by_condition(condition: &PodCondition) -> Option<String> {
    let reason = trimmed(&condition.reason);
    let cause = match reason {
        "PreemptionByScheduler" => PREEMPTED_BY_SCHEDULER,
        "DeletionByTaintManager" => {
            "The pod was deleted because its node has a NoExecute taint that the pod does not tolerate, \
             or no longer tolerates."
        }
        "EvictionByEvictionAPI" => {
            "The pod was evicted through the Eviction API (as by kubectl drain), and no \
             PodDisruptionBudget prevented it."
        }
        "DeletionByPodGC" => DELETED_BY_POD_GC,
        _ => return None,
    };
    let message = trimmed(&condition.message);
    Some(format!("{cause} {NOT_AN_EVICTION} DisruptionTarget condition: {reason}: {message}"))
}

fn by_reason(pod: &Pod) -> Option<String> {
    let status = &pod.status;
    let (reason, message) = (trimmed(&status.reason), trimmed(&status.message));
    match reason {
        "Evicted" if message.is_empty() => Some(
            "The kubelet evicted the pod, and its status does not have the message. The Evicted event has it, \
             for an hour: kubectl get events --field-selector reason=Evicted -o yaml"
                .to_owned(),
        ),
        "Preempting" => Some(format!(
            "{PREEMPTED_BY_KUBELET} {NOT_AN_EVICTION} Status message: {message}"
        )),
        "NodeShutdown" => Some(rejected_at_shutdown(pod)),
        "Shutdown" if message.contains("not admitting") => Some(rejected_at_shutdown(pod)),
        "Terminated" | "Shutdown" => Some(format!(
            "{NODE_SHUT_DOWN} {NOT_AN_EVICTION} Status message: {message}"
        )),
        "DeadlineExceeded" => Some(format!("{DEADLINE_EXCEEDED} {NOT_AN_EVICTION} Status message: {message}")),
        "NodeLost" => Some(format!("{NODE_LOST} {NOT_AN_EVICTION} Status message: {message}")),
        _ if reason.starts_with("OutOf")
            || reason == "NodeAffinity"
            || reason == "UnexpectedAdmissionError" =>
        {
            Some(format!(
                "The kubelet rejected the pod ({reason}); the pod never ran there. Status message: {message}"
            ))
        }
        _ => None,
    }
}

/// Describes the rejection by a node that shuts down. After a restart of the kubelet, it may reject
/// a pod that ran before.
fn rejected_at_shutdown(pod: &Pod) -> String {
    let cause = if pod.has_run() {
        "The kubelet rejected the pod, because its node was shutting down (graceful node shutdown)."
    } else {
        REJECTED_AT_SHUTDOWN
    };
    format!("{cause} {NOT_AN_EVICTION} Status message: {}", trimmed(&pod.status.message))
}

fn by_oom_kill(status: &PodStatus) -> Option<String> {
    let killed = status.all_container_statuses().find(|status| {
        [&status.state, &status.last_state].into_iter().any(|state| {
            state.terminated.as_ref().is_some_and(|end| end.reason.as_deref() == Some("OOMKilled"))
        })
    })?;
    Some(format!(
        "The kernel OOM-killed container {}: it reached its memory limit, or the node ran out of memory \
         before the kubelet noticed. An OOM kill is not an eviction: the pod stays on its node, and the \
         container may be restarted.",
        killed.name
    ))
}

/// Describes an eviction whose event has no message, or one that is not of a kubelet. `source`: the
/// component that sent the event, if known.
pub(crate) fn unknown_eviction(source: Option<&str>, message: &str) -> String {
    let message = message.trim();
    // The words of Karpenter, in a table without the source.
    let source = source.or_else(|| message.starts_with("Evicted pod").then_some("karpenter"));
    match source.filter(|source| *source != "kubelet") {
        Some(source) if message.is_empty() => {
            format!("{source} evicted the pod, and the event has no message. {NOT_AN_EVICTION}")
        }
        None if message.is_empty() => {
            "The pod was evicted, and the event has no message: the cause is unknown. The status of the pod may \
             have the message: kubectl get pod NAME -o yaml. A copy of the event may have lost the message: \
             kubectl get events --field-selector reason=Evicted -o yaml"
                .to_owned()
        }
        Some(source) => format!("{source} evicted the pod, with the message {message:?}. {NOT_AN_EVICTION}"),
        None if cut_after(message).is_some() => format!(
            "The kubelet evicted the pod, and the message is cut before it states the resource or the limit: \
             {message:?}."
        ),
        None => format!(
            "The pod was evicted, and the message is not a complete one of a kubelet of 1.26 to 1.37: {message:?}."
        ),
    }
}

pub(crate) const NOT_AN_EVICTION: &str = "This is not a node-pressure eviction.";
pub(crate) const PREEMPTED_BY_SCHEDULER: &str =
    "The scheduler preempted the pod for a pod of higher priority.";
pub(crate) const PREEMPTED_BY_KUBELET: &str =
    "The kubelet preempted the pod to admit a critical pod that needs its resources.";
pub(crate) const NODE_SHUT_DOWN: &str = "The pod's node was shut down (graceful node shutdown).";
pub(crate) const REJECTED_AT_SHUTDOWN: &str = "The kubelet rejected the pod, because its node was shutting down \
                                              (graceful node shutdown); the pod never ran there.";
pub(crate) const DEADLINE_EXCEEDED: &str =
    "The kubelet ended the pod: it ran longer than its activeDeadlineSeconds.";
pub(crate) const NODE_LOST: &str = "The pod's node stopped responding.";
pub(crate) const DELETED_BY_POD_GC: &str =
    "The pod garbage collector deleted the pod: its node no longer exists, or the pod had no node.";

fn trimmed(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default().trim_end()
}
