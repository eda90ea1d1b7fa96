//! The health of nodes, by their heartbeats: `pkg/controller/nodelifecycle`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::{self, Recorder, Told, Weight};
use super::taints::{self, NOT_READY, UNREACHABLE};
use super::{ControlEvent, after, meta, node_of};
use crate::registry::condition;
use crate::registry::control_plane;
use crate::store::Kind;
use crate::time::Time;
use crate::world::Ctx;

const COMPONENT: &str = "node-controller";

/// `--node-monitor-period`.
const PERIOD: Duration = Duration::from_secs(5);

/// How long after the beginning the first look is, so that nodes are known soon.
const FIRST: Duration = Duration::from_secs(1);

/// A kubelet that has never told anything gets more time (`--node-startup-grace-period`).
const STARTUP: Duration = Duration::from_secs(60);

/// The conditions that only a kubelet that lives can vouch for.
const VOUCHED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// What was last heard of a node.
#[derive(Debug)]
struct Heard {
    uid: String,
    /// `lastHeartbeatTime` of its condition `Ready`.
    status: String,
    /// `renewTime` of its lease.
    lease: String,
    /// When either was new.
    at: Time,
}

/// What is known of the nodes.
#[derive(Debug, Default)]
pub(super) struct Health {
    nodes: BTreeMap<String, Heard>,
}

impl Health {
    /// Begins to look.
    pub(super) fn start(&mut self, ctx: &mut Ctx) {
        after(ctx, FIRST, ControlEvent::Health);
    }

    /// Looks at all nodes (`monitorNodeHealth`).
    pub(super) fn look(&mut self, recorder: &mut Recorder, ctx: &mut Ctx) {
        let nodes: Vec<_> = ctx.store.list(Kind::Node, None).cloned().collect();
        let gone = |name: &String| !nodes.iter().any(|node| meta(node, "name") == name);
        for name in self.nodes.keys().filter(|name| gone(name)).cloned().collect::<Vec<_>>() {
            if let Some(heard) = self.nodes.remove(&name) {
                let message = format!("Node {name} event: Removing Node {name} from Controller");
                let told = Told { weight: Weight::Normal, reason: "RemovingNode", message: &message };
                recorder.tell(ctx, COMPONENT, events::node(&name, &heard.uid), told);
            }
        }
        for node in &nodes {
            self.look_at(node, recorder, ctx);
        }
        after(ctx, PERIOD, ControlEvent::Health);
    }

    fn look_at(&mut self, node: &Value, recorder: &mut Recorder, ctx: &mut Ctx) {
        let (name, uid) = (meta(node, "name"), meta(node, "uid"));
        let ready = condition::find(node, "Ready");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = ready.map_or_else(String::new, |ready| text(&ready["lastHeartbeatTime"]));
        let lease = ctx.store.get(Kind::Lease, "kube-node-lease", name);
        let lease = lease.map_or_else(String::new, |lease| text(&lease["spec"]["renewTime"]));
        if !self.nodes.contains_key(name) {
            let message = format!("Node {name} event: Registered Node {name} in Controller");
            let told = Told { weight: Weight::Normal, reason: "RegisteredNode", message: &message };
            recorder.tell(ctx, COMPONENT, events::node(name, uid), told);
        }
        let fresh =
            || Heard { uid: uid.to_owned(), status: status.clone(), lease: lease.clone(), at: ctx.now };
        let heard = self.nodes.entry(name.to_owned()).or_insert_with(fresh);
        if heard.status != status || heard.lease != lease {
            *heard = fresh();
        }
        let patience = match ready {
            None => STARTUP,
            // `NodeMonitorGracePeriod`, nodelifecycle/config/v1alpha1/defaults.go: 50 s in 1.31 and later, 40 s before.
            Some(_) if control_plane(ctx).at_least(31) => Duration::from_secs(50),
            Some(_) => Duration::from_secs(40),
        };
        let before = condition::status(node, "Ready");
        let silent = ctx.now.since(heard.at) > patience;
        if silent {
            mark_unknown(name, ctx);
        }
        match if silent { "Unknown" } else { before } {
            "True" => execute(node, &[], &[NOT_READY, UNREACHABLE], ctx),
            "False" => execute(node, &[NOT_READY], &[UNREACHABLE], ctx),
            // Without a condition nothing is known yet.
            "Unknown" => execute(node, &[UNREACHABLE], &[NOT_READY], ctx),
            _ => {}
        }
        if silent && before == "True" {
            let message = format!("Node {name} status is now: NodeNotReady");
            let told = Told { weight: Weight::Normal, reason: "NodeNotReady", message: &message };
            recorder.tell(ctx, COMPONENT, events::node(name, uid), told);
            mark_pods(name, recorder, ctx);
        }
    }
}

/// Swaps the `NoExecute` taints of a node, unless they are as they should be.
fn execute(node: &Value, add: &[&str], remove: &[&str], ctx: &mut Ctx) {
    const EFFECT: &str = "NoExecute";
    let has = |key: &&str| taints::of(node).any(|taint| taint["key"] == **key && taint["effect"] == EFFECT);
    if !add.iter().all(has) || remove.iter().any(has) {
        taints::swap(meta(node, "name"), EFFECT, add, remove, ctx);
    }
}

/// Nobody vouches for a node's conditions any longer.
fn mark_unknown(node: &str, ctx: &mut Ctx) {
    let now = ctx.epoch().seconds(ctx.now);
    ctx.store.update(Kind::Node, "", node, |node| {
        let created = node["metadata"]["creationTimestamp"].clone();
        let conditions = &mut node["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Some(conditions) = conditions.as_array_mut() else { return };
        for kind in VOUCHED {
            match conditions.iter_mut().find(|condition| condition["type"] == kind) {
                None => conditions.push(json!({
                    "type": kind,
                    "status": "Unknown",
                    "lastHeartbeatTime": created,
                    "lastTransitionTime": now,
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                })),
                Some(condition) if condition["status"] != "Unknown" => {
                    condition["status"] = json!("Unknown");
                    condition["reason"] = json!("NodeStatusUnknown");
                    condition["message"] = json!("Kubelet stopped posting node status.");
                    condition["lastTransitionTime"] = json!(now);
                }
                Some(_) => {}
            }
        }
    });
}

/// The pods of a silent node are not ready (`MarkPodsNotReady`).
fn mark_pods(node: &str, recorder: &mut Recorder, ctx: &mut Ctx) {
    let pods: Vec<_> = ctx.store.list(Kind::Pod, None).filter(|pod| node_of(pod) == node).cloned().collect();
    let now = ctx.epoch().seconds(ctx.now);
    for pod in pods.iter().filter(|pod| condition::status(pod, "Ready") == "True") {
        ctx.store.update(Kind::Pod, meta(pod, "namespace"), meta(pod, "name"), |pod| {
            let conditions = pod["status"]["conditions"].as_array_mut().into_iter().flatten();
            for ready in conditions.filter(|condition| condition["type"] == "Ready") {
                ready["status"] = json!("False");
                ready["lastTransitionTime"] = json!(now);
            }
        });
        let told = Told { weight: Weight::Warning, reason: "NodeNotReady", message: "Node is not ready" };
        recorder.tell(ctx, COMPONENT, events::pod(pod), told);
    }
}
