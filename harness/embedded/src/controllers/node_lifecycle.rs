//! Node lifecycle controller: node health by heartbeats (`pkg/controller/nodelifecycle`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::context::{ControllerContext, ControllerEvent};
use super::recorder;
use super::taints::{self, NOT_READY, UNREACHABLE};
use crate::apiserver::control_plane_version;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::Time;

const COMPONENT: &str = "node-controller";

/// `--node-monitor-period`.
const PERIOD: Duration = Duration::from_secs(5);

/// Delay of the first check, shorter than the period so that nodes are known early.
const FIRST: Duration = Duration::from_secs(1);

/// `--node-startup-grace-period`, for a kubelet that has never reported.
const STARTUP: Duration = Duration::from_secs(60);

/// Conditions that become `Unknown` without heartbeats.
const HEARTBEAT_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Last heartbeat of a node.
#[derive(Debug)]
struct Heartbeat {
    uid: String,
    /// `lastHeartbeatTime` of its condition `Ready`.
    status: String,
    /// `renewTime` of its lease.
    lease: String,
    /// Time at which either of them changed.
    at: Time,
}

/// State of the node lifecycle controller.
#[derive(Debug, Default)]
pub(super) struct NodeLifecycle {
    nodes: BTreeMap<String, Heartbeat>,
}

impl NodeLifecycle {
    /// Schedules the first check.
    pub(super) fn start(&mut self, ctx: &mut ControllerContext) {
        ctx.schedule_after(FIRST, ControllerEvent::NodeLifecycle);
    }

    /// Checks all nodes (`monitorNodeHealth`).
    pub(super) fn check(&mut self, ctx: &mut ControllerContext) {
        let nodes: Vec<_> = ctx.store.list(Kind::Node, None).cloned().collect();
        let is_missing = |name: &String| !nodes.iter().any(|node| node.name() == name);
        for name in self.nodes.keys().filter(|name| is_missing(name)).cloned().collect::<Vec<_>>() {
            if let Some(heartbeat) = self.nodes.remove(&name) {
                let message = format!("Node {name} event: Removing Node {name} from Controller");
                let event = EventBody::normal("RemovingNode", &message);
                ctx.record(COMPONENT, recorder::node(&name, &heartbeat.uid), event);
            }
        }
        for node in &nodes {
            self.check_node(node, ctx);
        }
        ctx.schedule_after(PERIOD, ControllerEvent::NodeLifecycle);
    }

    fn check_node(&mut self, node: &Value, ctx: &mut ControllerContext) {
        let (name, uid) = (node.name(), node.uid());
        let ready = node.condition("Ready");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = ready.map_or_else(String::new, |ready| text(&ready["lastHeartbeatTime"]));
        let lease = ctx.store.get(Kind::Lease, "kube-node-lease", name);
        let lease = lease.map_or_else(String::new, |lease| text(&lease["spec"]["renewTime"]));
        if !self.nodes.contains_key(name) {
            let message = format!("Node {name} event: Registered Node {name} in Controller");
            let event = EventBody::normal("RegisteredNode", &message);
            ctx.record(COMPONENT, recorder::node(name, uid), event);
        }
        let fresh =
            || Heartbeat { uid: uid.to_owned(), status: status.clone(), lease: lease.clone(), at: ctx.now };
        let heartbeat = self.nodes.entry(name.to_owned()).or_insert_with(fresh);
        if heartbeat.status != status || heartbeat.lease != lease {
            *heartbeat = fresh();
        }
        let grace_period = match ready {
            None => STARTUP,
            // `NodeMonitorGracePeriod`, nodelifecycle/config/v1alpha1/defaults.go: 50 s in 1.31 and
            // later, 40 s before.
            Some(_) if control_plane_version(ctx).at_least(31) => Duration::from_secs(50),
            Some(_) => Duration::from_secs(40),
        };
        let before = ready.map_or("", |ready| ready.text("status"));
        let silent = ctx.now.since(heartbeat.at) > grace_period;
        if silent {
            mark_unknown(name, ctx);
        }
        match if silent { "Unknown" } else { before } {
            "True" => execute(node, &[], &[NOT_READY, UNREACHABLE], ctx),
            "False" => execute(node, &[NOT_READY], &[UNREACHABLE], ctx),
            // Without a condition, the state is not known yet.
            "Unknown" => execute(node, &[UNREACHABLE], &[NOT_READY], ctx),
            _ => {}
        }
        if silent && before == "True" {
            let message = format!("Node {name} status is now: NodeNotReady");
            let event = EventBody::normal("NodeNotReady", &message);
            ctx.record(COMPONENT, recorder::node(name, uid), event);
            mark_pods(name, ctx);
        }
    }
}

/// Swaps the `NoExecute` taints of a node, unless they are up to date.
fn execute(node: &Value, add: &[&str], remove: &[&str], ctx: &mut ControllerContext) {
    const EFFECT: &str = "NoExecute";
    let has = |key: &&str| node.taints().any(|taint| taint["key"] == **key && taint["effect"] == EFFECT);
    if !add.iter().all(has) || remove.iter().any(has) {
        taints::swap(node.name(), EFFECT, add, remove, ctx);
    }
}

/// Sets the conditions of a node to `Unknown`.
fn mark_unknown(node: &str, ctx: &mut ControllerContext) {
    let now = ctx.epoch().seconds(ctx.now);
    ctx.store.update(Kind::Node, "", node, |node| {
        let created = node["metadata"]["creationTimestamp"].clone();
        let conditions = &mut node["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Some(conditions) = conditions.as_array_mut() else { return };
        for kind in HEARTBEAT_CONDITIONS {
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

/// Marks the pods of an unreachable node as not ready (`MarkPodsNotReady`).
fn mark_pods(node: &str, ctx: &mut ControllerContext) {
    let pods: Vec<_> =
        ctx.store.list(Kind::Pod, None).filter(|pod| pod.node_name() == node).cloned().collect();
    let now = ctx.epoch().seconds(ctx.now);
    for pod in pods.iter().filter(|pod| pod.has_condition("Ready")) {
        ctx.store.update(Kind::Pod, pod.namespace(), pod.name(), |pod| {
            let conditions = pod["status"]["conditions"].as_array_mut().into_iter().flatten();
            for ready in conditions.filter(|condition| condition["type"] == "Ready") {
                ready["status"] = json!("False");
                ready["lastTransitionTime"] = json!(now);
            }
        });
        let event = EventBody::warning("NodeNotReady", "Node is not ready");
        ctx.record(COMPONENT, recorder::object_reference(Kind::Pod, pod), event);
    }
}
