//! Which nodes of somebody else's cluster a run uses, and which of them it may starve.

use k8s_openapi::api::core::v1::{Node as ApiNode, Pod, Taint};
use kube::ResourceExt;

use crate::cluster::is_ready;

/// The labels of nodes that carry the cluster itself.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// The taint of a cordoned node.
pub const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// How nodes are chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    /// Whether the nodes are those that a selector selected.
    pub selected: bool,
    /// Whether nodes may be starved at all.
    pub disruption: bool,
}

/// Why a node is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    NotReady,
    NotLinux,
    ControlPlane,
    Cordoned,
    Tainted,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotReady => "is not ready",
            Self::NotLinux => "does not run Linux",
            Self::ControlPlane => "is a control plane",
            Self::Cordoned => "is cordoned",
            Self::Tainted => "is tainted",
        })
    }
}

impl Choice {
    /// Why a node is not used; none if it is. Selected nodes are taken as they are, if they can run a pod at all. Of the others, those that
    /// somebody keeps for a purpose are left alone; a tainted one may be kept for this one.
    pub fn leaves_out(self, node: &ApiNode) -> Option<LeftOut> {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        if info.is_some_and(|info| info.operating_system != "linux") {
            return Some(LeftOut::NotLinux);
        }
        if !is_ready(node) {
            return Some(LeftOut::NotReady);
        }
        if self.selected {
            return None;
        }
        if CONTROL_PLANE.iter().any(|label| node.labels().contains_key(*label)) {
            return Some(LeftOut::ControlPlane);
        }
        if is_cordoned(node) {
            return Some(LeftOut::Cordoned);
        }
        (!self.disruption && is_kept(node)).then_some(LeftOut::Tainted)
    }

    /// Why a node that is used must not be starved; none if it may. `others` are the pods of others on it.
    pub fn spares(self, node: &ApiNode, others: &[String]) -> Option<Spared> {
        match (self.disruption, self.selected, is_kept(node)) {
            (false, ..) => Some(Spared::NotAllowed),
            (true, true, _) => None,
            (true, false, false) => Some(Spared::NotKept),
            (true, false, true) if others.is_empty() => None,
            (true, false, true) => Some(Spared::InUse(others.to_vec())),
        }
    }
}

/// Why a node must not be starved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spared {
    /// Nobody said that any may.
    #[error("it starves a node, and that takes --allow-disruption")]
    NotAllowed,
    /// It is a node for everybody.
    #[error("it starves a node, and this one is neither selected (--node-selector) nor tainted")]
    NotKept,
    /// Others' pods are on it.
    #[error("it starves a node, and this one runs pods of others ({}): select it (--node-selector) if they may be evicted", some(.0))]
    InUse(Vec<String>),
}

/// The first few.
fn some(names: &[String]) -> String {
    match names {
        [one, two, _, rest @ ..] => format!("{one}, {two} and {} more", rest.len() + 1),
        few => few.join(", "),
    }
}

fn taints(node: &ApiNode) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

fn is_cordoned(node: &ApiNode) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
        || taints(node).any(|taint| taint.key == CORDONED)
}

/// Whether somebody keeps ordinary pods off a node. Kubernetes' own taints tell how a node is, not what it is for.
fn is_kept(node: &ApiNode) -> bool {
    taints(node).any(|taint| {
        let own =
            taint.key.starts_with("node.kubernetes.io/") || taint.key.starts_with("node-role.kubernetes.io/");
        !own && ["NoSchedule", "NoExecute"].contains(&taint.effect.as_str())
    })
}

/// The pods on a node that pressure could take from somebody: running ones, other than those that belong to the node itself (of DaemonSets, and
/// static ones).
pub(super) fn others<'a>(pods: impl IntoIterator<Item = &'a Pod>, node: &str) -> Vec<String> {
    let on_it = |pod: &&Pod| {
        let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let runs = !matches!(ended, Some("Failed" | "Succeeded"));
        runs && pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node)
    };
    let of_the_node = |pod: &&Pod| {
        pod.owner_references().iter().any(|owner| ["DaemonSet", "Node"].contains(&owner.kind.as_str()))
    };
    let name = |pod: &Pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    pods.into_iter().filter(on_it).filter(|pod| !of_the_node(pod)).map(name).collect()
}

/// The other nodes that have a node's kernel: containers on one host have one, and so one id of its boot.
pub(super) fn of_one_kernel(nodes: &[ApiNode], name: &str) -> Vec<String> {
    let boot = |node: &ApiNode| {
        let info = node.status.as_ref()?.node_info.as_ref()?;
        (!info.boot_id.is_empty()).then(|| info.boot_id.clone())
    };
    let Some(own) = nodes.iter().find(|node| node.name_any() == name).and_then(boot) else {
        return Vec::new();
    };
    let others = nodes.iter().filter(|node| boot(node).as_ref() == Some(&own));
    others.map(ResourceExt::name_any).filter(|other| other != name).collect()
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
    fn nodes_that_are_for_something_else_are_left_alone_unless_they_are_selected() {
        let taint = |key: &str, effect: &str| json!({"taints": [{"key": key, "effect": effect}]});
        let plain = node(json!({}), json!({}), "True");
        let control = node(json!({"node-role.kubernetes.io/control-plane": ""}), json!({}), "True");
        let cordoned = node(json!({}), json!({"unschedulable": true}), "True");
        let kept = node(json!({}), taint("team", "NoSchedule"), "True");
        let preferred = node(json!({}), taint("team", "PreferNoSchedule"), "True");
        let ill = node(json!({}), json!({}), "Unknown");
        let mut windows = plain.clone();
        windows.status.as_mut().unwrap().node_info.as_mut().unwrap().operating_system = "windows".to_owned();
        use LeftOut::{ControlPlane, Cordoned, NotLinux, NotReady, Tainted};
        // By default; with disruption allowed; selected.
        let rows = [
            (&plain, [None, None, None]),
            (&preferred, [None, None, None]),
            (&control, [Some(ControlPlane), Some(ControlPlane), None]),
            (&cordoned, [Some(Cordoned), Some(Cordoned), None]),
            (&kept, [Some(Tainted), None, None]),
            (&ill, [Some(NotReady); 3]),
            (&windows, [Some(NotLinux); 3]),
        ];
        for (node, expected) in rows {
            let choices = [
                Choice::default(),
                Choice { disruption: true, ..Choice::default() },
                Choice { selected: true, ..Choice::default() },
            ];
            assert_eq!(choices.map(|choice| choice.leaves_out(node)), expected, "{node:?}");
        }
    }

    #[test]
    fn only_nodes_that_are_given_for_it_are_starved() {
        let plain = node(json!({}), json!({}), "True");
        let kept = node(json!({}), json!({"taints": [{"key": "team", "effect": "NoExecute"}]}), "True");
        let pressed =
            json!({"taints": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]});
        let pressed = node(json!({}), pressed, "True");
        let others = ["a/b".to_owned()];
        let (no, yes) = (false, true);
        type Row<'a> = (bool, bool, &'a ApiNode, &'a [String], Option<Spared>);
        let rows: [Row<'_>; 7] = [
            (no, yes, &kept, &[], Some(Spared::NotAllowed)),
            (yes, yes, &plain, &others, None),
            (yes, no, &plain, &[], Some(Spared::NotKept)),
            (yes, no, &pressed, &[], Some(Spared::NotKept)),
            (yes, no, &kept, &[], None),
            (yes, no, &kept, &others, Some(Spared::InUse(others.to_vec()))),
            (no, no, &plain, &[], Some(Spared::NotAllowed)),
        ];
        for (disruption, selected, node, others, expected) in rows {
            assert_eq!(Choice { selected, disruption }.spares(node, others), expected);
        }
        let many = ["a/1", "a/2", "a/3", "a/4"].map(str::to_owned);
        assert!(Spared::InUse(many.to_vec()).to_string().contains("(a/1, a/2 and 2 more)"));
    }

    #[test]
    fn nodes_of_one_kernel_are_told_by_its_boot() {
        let booted = |name: &str, boot: &str| {
            let mut node = node(json!({}), json!({}), "True");
            node.metadata.name = Some(name.to_owned());
            node.status.as_mut().unwrap().node_info.as_mut().unwrap().boot_id = boot.to_owned();
            node
        };
        let nodes = [booted("a", "1"), booted("b", "1"), booted("c", "2"), booted("d", ""), booted("e", "")];
        let of = |name: &str| of_one_kernel(&nodes, name);
        assert_eq!((of("a"), of("c"), of("d")), (vec!["b".to_owned()], vec![], vec![]));
    }

    #[test]
    fn pods_of_the_node_itself_are_nobodys_else() {
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
            pod("far", "m", "ReplicaSet", "Running"),
        ];
        assert_eq!(others(&pods, "n"), ["ns/web"]);
    }
}
