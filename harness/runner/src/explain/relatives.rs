//! What took a pod away that the kubelet's eviction for want of resources did not.

use serde_json::Value;

use crate::observe::statuses;

/// Why a pod went, by the marks that each way of going leaves; none where it has none of them. See cases/relatives and cases/out-of-memory.
pub(super) fn relative(pod: &Value) -> Option<String> {
    let status = &pod["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().trim_end().to_owned();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let target = conditions
        .filter(|condition| condition["type"] == "DisruptionTarget" && condition["status"] == "True")
        .map(|condition| (text(&condition["reason"]), text(&condition["message"])))
        .next();
    let by_condition = target.and_then(|(reason, message)| {
        let says = match reason.as_str() {
            "PreemptionByScheduler" => "The scheduler preempted it: a pod of higher priority needed its place.",
            "DeletionByTaintManager" => "A NoExecute taint of its node that it does not tolerate, or no longer, had it deleted.",
            "EvictionByEvictionAPI" => "Somebody asked for its eviction by the API (kubectl drain does), and no PodDisruptionBudget spoke against it.",
            "DeletionByPodGC" => "The garbage collector of pods removed it: its node is gone, or it was bound to none.",
            _ => return None,
        };
        Some(format!("{says} That is no node-pressure eviction. Its DisruptionTarget condition says {reason}: {message}"))
    });
    let reason = text(&status["reason"]);
    let message = text(&status["message"]);
    let by_reason = || match reason.as_str() {
        "Preempting" => Some(format!(
            "The kubelet preempted it, to admit a critical pod that asks for what it had. That is no node-pressure eviction. It says: {message}"
        )),
        "Terminated" | "Shutdown" | "NodeShutdown" => Some(format!(
            "Its node was shut down (graceful node shutdown). That is no node-pressure eviction. It says: {message}"
        )),
        "NodeLost" => Some(format!("Its node stopped answering. It says: {message}")),
        _ if reason.starts_with("OutOf")
            || reason == "NodeAffinity"
            || reason == "UnexpectedAdmissionError" =>
        {
            Some(format!("The kubelet did not admit it ({reason}): it never ran there. It says: {message}"))
        }
        _ => None,
    };
    by_condition.or_else(by_reason).or_else(|| killed_for_memory(status))
}

fn killed_for_memory(status: &Value) -> Option<String> {
    let killed = statuses(status).find(|own| {
        ["state", "lastState"].into_iter().any(|state| own[state]["terminated"]["reason"] == "OOMKilled")
    })?;
    Some(format!(
        "The kernel killed its container {} for memory (OOMKilled): at its own limit, or because the node had no memory left before the kubelet \
         looked. That is no eviction; the pod is not moved, and may be restarted where it is.",
        killed["name"].as_str().unwrap_or_default()
    ))
}
