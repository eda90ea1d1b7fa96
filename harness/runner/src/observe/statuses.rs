//! The statuses of a pod's containers.

use serde_json::Value;

/// The lists of statuses in a pod's `status`: init containers, regular ones, ephemeral ones.
pub(crate) const STATUSES: [&str; 3] =
    ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];

/// Those of all containers, of every kind, in a pod's `status`: init containers, regular ones, ephemeral ones.
pub fn statuses(status: &Value) -> impl Iterator<Item = &Value> {
    STATUSES.into_iter().flat_map(|list| status[list].as_array().into_iter().flatten())
}

/// The condition in a pod's `status` by which the kubelet says that it ended the pod for want of resources (KEP-3329).
pub(crate) fn ended_by_kubelet(status: &Value) -> Option<&Value> {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| {
        condition["type"] == "DisruptionTarget" && condition["reason"] == "TerminationByKubelet"
    })
}
