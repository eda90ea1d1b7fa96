//! Selection of the nodes of an existing cluster, and of those that may come under pressure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node as ApiNode, Pod};
use kube::ResourceExt;

use crate::node::{CORDONED, PressureForbidden, SYSTEM_TAINT_PREFIX, is_ready, is_static_pod, taints};

/// Labels of control plane nodes: of kubeadm, also before 1.20, RKE, RKE2 and K3s, kOps, and
/// MicroK8s.
const CONTROL_PLANE_LABELS: [&str; 6] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/controlplane",
    "node-role.kubernetes.io/etcd",
    "node-role.kubernetes.io/api-server",
    "node.kubernetes.io/microk8s-controlplane",
];
/// Starts of the names of static pods that only control plane nodes have.
const CONTROL_PLANE_PODS: [&str; 2] = ["etcd-", "kube-apiserver-"];

/// Rules for the selection of nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeFilter {
    /// True if the nodes match a selector of the user.
    pub(super) selected: bool,
    /// True if nodes may come under pressure (`--allow-disruption`).
    pub(super) disruption: bool,
    /// True if selected nodes may come under pressure although other pods run on them
    /// (`--allow-other-pods`).
    pub(super) other_pods: bool,
    /// True if selected control plane nodes are used (`--allow-control-plane`).
    pub(super) control_planes: bool,
}

/// Reason that a node is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExcludeReason {
    NotReady,
    NotLinux,
    ControlPlane,
    Cordoned,
    Tainted,
}

impl std::fmt::Display for ExcludeReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotReady => "is not ready",
            Self::NotLinux => "does not run Linux",
            Self::ControlPlane => "is a control plane (--allow-control-plane)",
            Self::Cordoned => "is cordoned",
            Self::Tainted => "is tainted",
        })
    }
}

impl NodeFilter {
    /// Reason that a node is not used; `None` if it is used.
    ///
    /// Selected nodes are used if they can run pods; control plane nodes only with permission.
    /// Other nodes are not used if they are dedicated to a purpose; a tainted node is used if
    /// disruption is allowed, as it may be dedicated to evictlab. `pods` are those on the node,
    /// `api_servers` the addresses of the API servers.
    pub(super) fn exclude_reason(
        self,
        node: &ApiNode,
        pods: &[&Pod],
        api_servers: &BTreeSet<String>,
    ) -> Option<ExcludeReason> {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        if info.is_some_and(|info| info.operating_system != "linux") {
            return Some(ExcludeReason::NotLinux);
        }
        if !is_ready(node) {
            return Some(ExcludeReason::NotReady);
        }
        let is_permitted = self.selected && self.control_planes;
        if !is_permitted && is_control_plane(node, pods, api_servers) {
            return Some(ExcludeReason::ControlPlane);
        }
        if self.selected {
            return None;
        }
        if is_cordoned(node) {
            return Some(ExcludeReason::Cordoned);
        }
        (!self.disruption && is_dedicated(node)).then_some(ExcludeReason::Tainted)
    }

    /// Reason that a used node must not come under pressure; `None` if it may. `others` are the
    /// pods on it that do not belong to the node.
    pub(super) fn pressure_forbidden(self, node: &ApiNode, others: &[String]) -> Option<PressureForbidden> {
        match (self.disruption, self.selected, is_dedicated(node)) {
            (false, ..) => Some(PressureForbidden::NotAllowed),
            (true, false, false) => Some(PressureForbidden::NotDedicated),
            _ if others.is_empty() || (self.selected && self.other_pods) => None,
            _ => Some(PressureForbidden::InUse(others.to_vec())),
        }
    }
}

/// Returns whether a node is a control plane: by its labels, by an address of an API server, or by
/// a static pod of the control plane.
fn is_control_plane(node: &ApiNode, pods: &[&Pod], api_servers: &BTreeSet<String>) -> bool {
    let has_label = CONTROL_PLANE_LABELS.iter().any(|label| node.labels().contains_key(*label));
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let is_of_control_plane = |pod: &&Pod| {
        is_static_pod(pod) && CONTROL_PLANE_PODS.iter().any(|start| pod.name_any().starts_with(start))
    };
    has_label
        || addresses.map(|address| &address.address).any(|address| api_servers.contains(address))
        || pods.iter().any(is_of_control_plane)
}

fn is_cordoned(node: &ApiNode) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
        || taints(node).any(|taint| taint.key == CORDONED)
}

/// Returns whether a taint keeps ordinary pods off a node. Taints of Kubernetes itself describe the
/// state of a node, not its purpose.
fn is_dedicated(node: &ApiNode) -> bool {
    taints(node).any(|taint| {
        let is_system =
            taint.key.starts_with(SYSTEM_TAINT_PREFIX) || taint.key.starts_with("node-role.kubernetes.io/");
        !is_system && ["NoSchedule", "NoExecute"].contains(&taint.effect.as_str())
    })
}

/// Names of the nodes by their boot id: nodes that are containers on one host have the same.
pub(super) fn nodes_by_boot_id(nodes: &[ApiNode]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut by_boot_id: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in nodes {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let boot_id = info.map(|info| info.boot_id.as_str()).filter(|id| !id.is_empty());
        if let (Some(boot_id), Some(name)) = (boot_id, &node.metadata.name) {
            by_boot_id.entry(boot_id).or_default().insert(name);
        }
    }
    by_boot_id
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(labels: Value, spec: Value, ready: &str) -> ApiNode {
        serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": labels},
            "spec": spec,
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "nodeInfo": {"operatingSystem": "linux", "architecture": "", "bootID": "", "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "osImage": "", "systemUUID": ""},
            },
        }))
        .unwrap()
    }

    #[test]
    fn excludes_dedicated_nodes_unless_selected() {
        let taint = |key: &str, effect: &str| json!({"taints": [{"key": key, "effect": effect}]});
        let plain = node(json!({}), json!({}), "True");
        let control = node(json!({"node-role.kubernetes.io/control-plane": ""}), json!({}), "True");
        let cordoned = node(json!({}), json!({"unschedulable": true}), "True");
        let dedicated = node(json!({}), taint("team", "NoSchedule"), "True");
        let preferred = node(json!({}), taint("team", "PreferNoSchedule"), "True");
        let not_ready = node(json!({}), json!({}), "Unknown");
        let mut windows = plain.clone();
        windows.status.as_mut().unwrap().node_info.as_mut().unwrap().operating_system = "windows".to_owned();
        let labelled = |label: &str| node(json!({label: "true"}), json!({}), "True");
        let microk8s = labelled("node.kubernetes.io/microk8s-controlplane");
        let etcd = labelled("node-role.kubernetes.io/etcd");
        let rke = labelled("node-role.kubernetes.io/controlplane");
        let at = |address: &str| {
            let mut node = plain.clone();
            let addresses = json!([{"type": "InternalIP", "address": address}]);
            node.status.as_mut().unwrap().addresses = serde_json::from_value(addresses).unwrap();
            node
        };
        let (server, worker) = (at("10.0.0.1"), at("10.0.0.2"));
        let api_servers = BTreeSet::from(["10.0.0.1".to_owned()]);
        use ExcludeReason::{ControlPlane, Cordoned, NotLinux, NotReady, Tainted};
        // By default; with disruption allowed; selected.
        let rows = [
            (&plain, [None, None, None]),
            (&preferred, [None, None, None]),
            (&control, [Some(ControlPlane); 3]),
            (&microk8s, [Some(ControlPlane); 3]),
            (&etcd, [Some(ControlPlane); 3]),
            (&rke, [Some(ControlPlane); 3]),
            (&server, [Some(ControlPlane); 3]),
            (&worker, [None, None, None]),
            (&cordoned, [Some(Cordoned), Some(Cordoned), None]),
            (&dedicated, [Some(Tainted), None, None]),
            (&not_ready, [Some(NotReady); 3]),
            (&windows, [Some(NotLinux); 3]),
        ];
        for (node, expected) in rows {
            let filters = [
                NodeFilter::default(),
                NodeFilter { disruption: true, ..NodeFilter::default() },
                NodeFilter { selected: true, ..NodeFilter::default() },
            ];
            let reasons = filters.map(|filter| filter.exclude_reason(node, &[], &api_servers));
            assert_eq!(reasons, expected, "{node:?}");
        }
        let allowed = NodeFilter { control_planes: true, ..NodeFilter::default() };
        for node in [&control, &server] {
            let reason = |filter: NodeFilter| filter.exclude_reason(node, &[], &api_servers);
            assert_eq!(reason(allowed), Some(ControlPlane), "it is not selected");
            assert_eq!(reason(NodeFilter { selected: true, ..allowed }), None);
        }
    }

    #[test]
    fn static_pods_of_the_control_plane_exclude_a_node() {
        let plain = node(json!({}), json!({}), "True");
        let rows = [
            ("etcd-n", "Node", Some(ExcludeReason::ControlPlane)),
            ("kube-apiserver-n", "Node", Some(ExcludeReason::ControlPlane)),
            ("kube-proxy-n", "Node", None),
            ("etcd-0", "StatefulSet", None),
        ];
        for (name, owner, expected) in rows {
            let owners = json!([{"apiVersion": "v1", "kind": owner, "name": "n", "uid": "u"}]);
            let pod = json!({"metadata": {"name": name, "ownerReferences": owners}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            let filter = NodeFilter { selected: true, ..NodeFilter::default() };
            assert_eq!(filter.exclude_reason(&plain, &[&pod], &BTreeSet::new()), expected, "{name}");
        }
    }

    #[test]
    fn allows_pressure_only_on_selected_or_dedicated_nodes() {
        let plain = node(json!({}), json!({}), "True");
        let dedicated = node(json!({}), json!({"taints": [{"key": "team", "effect": "NoExecute"}]}), "True");
        let pressed =
            json!({"taints": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]});
        let pressed = node(json!({}), pressed, "True");
        let others = ["a/b".to_owned()];
        let (no, yes) = (false, true);
        type Row<'a> = (bool, bool, &'a ApiNode, &'a [String], Option<PressureForbidden>);
        let rows: [Row<'_>; 8] = [
            (no, yes, &dedicated, &[], Some(PressureForbidden::NotAllowed)),
            (yes, yes, &plain, &[], None),
            (yes, yes, &plain, &others, Some(PressureForbidden::InUse(others.to_vec()))),
            (yes, no, &plain, &[], Some(PressureForbidden::NotDedicated)),
            (yes, no, &pressed, &[], Some(PressureForbidden::NotDedicated)),
            (yes, no, &dedicated, &[], None),
            (yes, no, &dedicated, &others, Some(PressureForbidden::InUse(others.to_vec()))),
            (no, no, &plain, &[], Some(PressureForbidden::NotAllowed)),
        ];
        for (disruption, selected, node, others, expected) in rows {
            let filter = NodeFilter { selected, disruption, ..NodeFilter::default() };
            assert_eq!(filter.pressure_forbidden(node, others), expected);
        }
        for (selected, expected) in [(yes, None), (no, Some(PressureForbidden::InUse(others.to_vec())))] {
            let filter = NodeFilter { selected, disruption: yes, other_pods: yes, ..NodeFilter::default() };
            assert_eq!(filter.pressure_forbidden(&dedicated, &others), expected);
        }
    }

    #[test]
    fn finds_nodes_with_the_same_boot_id() {
        let booted = |name: &str, boot: &str| {
            let mut node = node(json!({}), json!({}), "True");
            node.metadata.name = Some(name.to_owned());
            node.status.as_mut().unwrap().node_info.as_mut().unwrap().boot_id = boot.to_owned();
            node
        };
        let nodes = [booted("a", "1"), booted("b", "1"), booted("c", "2"), booted("d", ""), booted("e", "")];
        let expected = BTreeMap::from([("1", BTreeSet::from(["a", "b"])), ("2", BTreeSet::from(["c"]))]);
        assert_eq!(nodes_by_boot_id(&nodes), expected);
    }
}
