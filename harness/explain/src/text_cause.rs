//! Texts of Kubernetes about terminations that are not evictions by the kubelet.

use std::sync::LazyLock;

use regex::Regex;

use crate::other_causes::{
    DELETED_BY_POD_GC, NODE_SHUT_DOWN, NOT_AN_EVICTION, PREEMPTED_BY_KUBELET, PREEMPTED_BY_SCHEDULER,
};

/// Patterns with the cause, which is not a node-pressure eviction.
static CAUSES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rows = [
        ("Preempted in order to admit critical pod|^Preempting\\b", PREEMPTED_BY_KUBELET),
        (
            "Preempted by (?:a )?pod\\b|Preempted by \\S+ on node|default-scheduler: preempting to accommodate|PreemptionByScheduler",
            PREEMPTED_BY_SCHEDULER,
        ),
        ("imminent node shutdown|node is shutting down|^NodeShutdown\\b", NODE_SHUT_DOWN),
        (
            "Eviction API: evicting|EvictionByEvictionAPI|evicting pod \\S+/\\S+",
            "The pod was evicted through the Eviction API, as by kubectl drain.",
        ),
        (
            "violate the pod's disruption budget",
            "An eviction through the Eviction API, as by kubectl drain, was refused by a PodDisruptionBudget.",
        ),
        (
            "TaintManagerEviction|DeletionByTaintManager|Taint manager: deleting due to NoExecute taint|Marking for deletion Pod",
            "The pod was deleted because its node has a NoExecute taint that the pod does not tolerate.",
        ),
        ("PodGC: node no longer exists|DeletionByPodGC|PodGC: unscheduled", DELETED_BY_POD_GC),
        (
            "Reason:\\s*OOMKilled|\\bOOMKilled\\b|\\bOOMKilling\\b|\\bTaskOOM event\\b",
            "The kernel OOM-killed a container: it reached its memory limit, or the node ran out of memory. The pod \
             stays on its node.",
        ),
        (
            "OutOf(?:cpu|memory|pods|ephemeral-storage)\\b",
            "The kubelet rejected the pod at admission, because the node has too little of a resource; the pod never \
             ran there.",
        ),
        (
            "Insufficient (?:cpu|memory|ephemeral-storage)\\b|FailedScheduling",
            "The scheduler found no node with enough resources; the pod did not run.",
        ),
    ];
    rows.map(|(pattern, cause)| (Regex::new(pattern).expect("the pattern is valid"), cause)).into()
});

/// Explains a line about the termination of a pod; `None` for other lines.
pub(crate) fn cause_in_text(line: &str) -> Option<String> {
    let (_, cause) = CAUSES.iter().find(|(pattern, _)| pattern.is_match(line))?;
    Some(format!("{cause} {NOT_AN_EVICTION}"))
}
