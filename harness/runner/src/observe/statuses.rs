//! The statuses of a pod's containers.

use serde_json::Value;

/// Those of all containers, of every kind, in a pod's `status`: init containers, regular ones, ephemeral ones.
pub fn statuses(status: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
    lists.into_iter().flat_map(|list| status[list].as_array().into_iter().flatten())
}
