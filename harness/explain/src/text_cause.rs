//! Texts of Kubernetes about terminations that are not evictions by the kubelet.

use std::sync::LazyLock;

use regex::Regex;

use crate::other_causes::{
    DEADLINE_EXCEEDED, DELETED_BY_POD_GC, NODE_LOST, NODE_SHUT_DOWN, NOT_AN_EVICTION, PREEMPTED_BY_KUBELET,
    PREEMPTED_BY_SCHEDULER, REJECTED_AT_SHUTDOWN,
};

/// The progress of an eviction through the Eviction API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiEviction {
    /// A client asked for it.
    Attempted,
    /// A PodDisruptionBudget prevented it.
    Refused,
    /// The API server accepted it.
    Done,
}

/// A termination that a line states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// The cause in sentences.
    pub why: String,
    /// `None` if the line is not about the Eviction API.
    pub api_eviction: Option<ApiEviction>,
}

pub(crate) const ATTEMPTED: &str = "An eviction of the pod through the Eviction API was attempted, as by kubectl drain; the \
                         text does not state whether it succeeded.";
pub(crate) const REFUSED: &str =
    "An eviction through the Eviction API, as by kubectl drain, was refused by a PodDisruptionBudget.";
pub(crate) const EVICTED: &str = "The pod was evicted through the Eviction API, as by kubectl drain.";

/// Patterns with the cause, which is not a node-pressure eviction. The first one that matches
/// counts.
static CAUSES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rows = [
        ("Preempted in order to admit critical pod|^Preempting\\b", PREEMPTED_BY_KUBELET),
        (
            "^Preempted: |Preempted by (?:a )?pod\\b|Preempted by \\S+ on node|default-scheduler: preempting to accommodate|PreemptionByScheduler",
            PREEMPTED_BY_SCHEDULER,
        ),
        (
            "rejected as the node is shutting down|not admitting any new pods|^NodeShutdown\\b",
            REJECTED_AT_SHUTDOWN,
        ),
        ("imminent node shutdown|node is shutting down|\"Shutdown manager .*pod\\b.*\" pod=", NODE_SHUT_DOWN),
        (
            "Pod was active on the node longer than (?:the )?specified deadline|^DeadlineExceeded$",
            DEADLINE_EXCEEDED,
        ),
        (
            "Job was active longer than (?:the )?specified deadline",
            "The Job controller deleted the pods of a Job: it ran longer than its activeDeadlineSeconds.",
        ),
        ("Node \\S+ which was running pod \\S+ is unresponsive|^NodeLost$", NODE_LOST),
        (
            "EvictedByVPA|Pod was evicted by VPA Updater",
            "The Vertical Pod Autoscaler evicted the pod, to start it with other requests.",
        ),
        (
            "\"Failed to admit pod to node\"",
            "The kubelet rejected the pod at admission, because its node was under pressure; the pod never ran there.",
        ),
        ("pod (?:eviction|evicted) from \\S+ node by \\S*descheduler", "The descheduler evicted the pod."),
        ("deleting pod for node scale down", "The cluster autoscaler evicts the pod, to remove its node."),
        ("violate the pod's disruption budget", REFUSED),
        ("Eviction API: evicting|EvictionByEvictionAPI|^pod/\\S+ evicted$", EVICTED),
        ("evicting pod \\S+/\\S+", ATTEMPTED),
        (
            "Cancelling deletion of Pod",
            "The pod was to be deleted because of a NoExecute taint of its node, and the deletion was cancelled.",
        ),
        (
            "TaintManagerEviction|Marking for deletion Pod",
            "The pod was marked for deletion because its node has a NoExecute taint that the pod does not tolerate, \
             or no longer tolerates.",
        ),
        (
            "DeletionByTaintManager|Taint manager: deleting due to NoExecute taint|NoExecuteTaintManager is deleting\
             |\"Deleting pod\".* controller=\"taint-eviction-controller\"",
            "The pod was deleted because its node has a NoExecute taint that the pod does not tolerate, or no longer \
             tolerates.",
        ),
        ("PodGC: node no longer exists|DeletionByPodGC|PodGC: unscheduled", DELETED_BY_POD_GC),
        (
            "container init was OOM-killed",
            "The container could not start: the kernel OOM-killed its first process, because its memory limit is too low.",
        ),
        (
            "Reason:\\s*OOMKilled|\\bOOMKilled\\b|\\bOOMKilling\\b|\\bTaskOOM event\\b|OOM kill detected for container\
             |<ninfo>: OOM (?:event )?received",
            "The kernel OOM-killed a container: it reached its memory limit, or the node ran out of memory. The pod \
             stays on its node.",
        ),
        (
            "OutOf(?:cpu|memory|pods|ephemeral-storage)\\b|Node didn't have enough resource: ",
            "The kubelet rejected the pod at admission, because the node has too little of a resource; the pod never \
             ran there.",
        ),
        (
            "Predicate \\S+ failed|UnexpectedAdmissionError|Pod was rejected: ",
            "The kubelet rejected the pod at admission; the pod never ran there.",
        ),
        (
            "(?:Insufficient (?:cpu|memory|ephemeral-storage)\\b|FailedScheduling|nodes are available: ).*untolerated taint.*node\\.kubernetes\\.io/(?:memory|disk|pid)-pressure",
            "The scheduler found no node for the pod. At least one node was under pressure and has a taint that the \
             pod does not tolerate; the pod was not evicted from it.",
        ),
        (
            "Insufficient (?:cpu|memory|ephemeral-storage)\\b",
            "The scheduler found no node with enough resources that meets the pod's other requirements, too; the pod \
             was not scheduled.",
        ),
        ("FailedScheduling", "The scheduler found no node for the pod; the event states the reasons."),
    ];
    rows.map(|(pattern, cause)| (Regex::new(pattern).expect("the pattern is valid"), cause)).into()
});

/// A field that states that a container was not OOM-killed, as of `docker inspect`.
static NOT_KILLED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\bOOMKilled"?\s*[:=]\s*"?(?:false|0|null)\b"#).expect("the pattern is valid")
});

/// Nodes under pressure, without a pod: a row of the conditions of `kubectl describe node`, or an
/// event.
static NODE_PRESSURE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?:Memory|Disk|PID)Pressure\s+True\b|\bEvictionThresholdMet\b|\bNodeHas(?:InsufficientMemory|DiskPressure|InsufficientPID)\b",
    )
    .expect("the pattern is valid")
});

/// Explains a line about the termination of a pod; `None` for other lines.
pub(crate) fn cause_in_text(line: &str) -> Option<Cause> {
    let line = NOT_KILLED.replace_all(line, "");
    let (_, cause) = CAUSES.iter().find(|(pattern, _)| pattern.is_match(&line))?;
    let api_eviction = match *cause {
        ATTEMPTED => Some(ApiEviction::Attempted),
        REFUSED => Some(ApiEviction::Refused),
        EVICTED => Some(ApiEviction::Done),
        _ => None,
    };
    Some(Cause { why: format!("{cause} {NOT_AN_EVICTION}"), api_eviction })
}

/// Returns whether a line states that a node was under pressure.
pub(crate) fn is_node_pressure(line: &str) -> bool {
    NODE_PRESSURE.is_match(line)
}
