//! Pods on a node that do not belong to it.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::workload::has_not_ended;

/// Names of the pods that are bound to a node and have not ended, except those that belong to the
/// node: DaemonSet pods and static pods.
pub(crate) fn names_of_other_pods<'a>(pods: impl IntoIterator<Item = &'a Pod>, node: &str) -> Vec<String> {
    let on_node = |pod: &&Pod| {
        has_not_ended(pod) && pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node)
    };
    let is_node_pod = |pod: &&Pod| is_static_pod(pod) || has_owner(pod, "DaemonSet");
    let name = |pod: &Pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    pods.into_iter().filter(on_node).filter(|pod| !is_node_pod(pod)).map(name).collect()
}

/// Returns whether a pod is the mirror pod of a static pod.
pub(crate) fn is_static_pod(pod: &Pod) -> bool {
    has_owner(pod, "Node")
}

fn has_owner(pod: &Pod, kind: &str) -> bool {
    pod.owner_references().iter().any(|owner| owner.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ignores_pods_that_belong_to_the_node() {
        let pod = |name: &str, node: &str, owner: &str, phase: &str| -> Pod {
            let owner = json!([{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u"}]);
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "ns", "ownerReferences": owner},
                "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase},
            }))
            .unwrap()
        };
        let pods = [
            pod("web", "n", "ReplicaSet", "Running"),
            pod("net", "n", "DaemonSet", "Running"),
            pod("etcd", "n", "Node", "Running"),
            pod("done", "n", "Job", "Succeeded"),
            pod("new", "n", "ReplicaSet", "Pending"),
            pod("far", "m", "ReplicaSet", "Running"),
        ];
        assert_eq!(names_of_other_pods(&pods, "n"), ["ns/web", "ns/new"]);
    }
}
