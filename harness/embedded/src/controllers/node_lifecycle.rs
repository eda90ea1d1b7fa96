//! Node lifecycle controller: node health by heartbeats (`pkg/controller/nodelifecycle`).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta;
use serde_json::Value;

use super::context::{ControllerContext, ControllerTask};
use super::recorder;
use super::taints::{self, NOT_READY, UNREACHABLE};
use crate::apiserver::control_plane_version;
use crate::resource::pod_status::{ConditionStatus, PodCondition};
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::SimTime;

const COMPONENT: &str = "node-controller";

/// `--node-monitor-period`.
const NODE_MONITOR_PERIOD: Duration = Duration::from_secs(5);

/// Delay of the first check, shorter than the period so that nodes are known early.
const FIRST_CHECK_DELAY: Duration = Duration::from_secs(1);

/// `--node-startup-grace-period`, for a kubelet that has never reported.
const NODE_STARTUP_GRACE_PERIOD: Duration = Duration::from_secs(60);

/// Conditions that become `Unknown` without heartbeats.
const HEARTBEAT_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Last heartbeat of a node.
#[derive(Debug)]
struct Heartbeat {
    uid: String,
    /// `lastHeartbeatTime` of its condition `Ready`.
    status: Option<meta::v1::Time>,
    /// `renewTime` of its lease.
    lease: Option<meta::v1::MicroTime>,
    /// Time at which either of them changed.
    at: SimTime,
}

/// State of the node lifecycle controller.
#[derive(Debug, Default)]
pub(super) struct NodeLifecycle {
    nodes: BTreeMap<String, Heartbeat>,
}

impl NodeLifecycle {
    /// Schedules the first check.
    pub(super) fn start(&mut self, ctx: &mut ControllerContext) {
        ctx.schedule_after(FIRST_CHECK_DELAY, ControllerTask::CheckHeartbeats);
    }

    /// Checks all nodes (`monitorNodeHealth`).
    pub(super) fn check(&mut self, ctx: &mut ControllerContext) {
        let nodes: Vec<_> = ctx.store.list(Kind::Node, None).cloned().collect();
        let is_missing = |name: &String| ctx.store.get(Kind::Node, "", name).is_none();
        for name in self.nodes.keys().filter(|name| is_missing(name)).cloned().collect::<Vec<_>>() {
            if let Some(heartbeat) = self.nodes.remove(&name) {
                let message = format!("Node {name} event: Removing Node {name} from Controller");
                let event = EventBody::normal("RemovingNode", &message);
                ctx.record(COMPONENT, recorder::node_reference(&name, &heartbeat.uid), event);
            }
        }
        for node in &nodes {
            self.check_node(node, ctx);
        }
        ctx.schedule_after(NODE_MONITOR_PERIOD, ControllerTask::CheckHeartbeats);
    }

    fn check_node(&mut self, node: &Value, ctx: &mut ControllerContext) {
        let (name, uid) = (node.name(), node.uid());
        let conditions: Vec<NodeCondition> = node.status().read("conditions");
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let status = ready.and_then(|ready| ready.last_heartbeat_time.clone());
        let lease = ctx.store.get(Kind::Lease, "kube-node-lease", name);
        let lease = lease.and_then(|lease| lease.read::<LeaseSpec>("spec").renew_time);
        if !self.nodes.contains_key(name) {
            let message = format!("Node {name} event: Registered Node {name} in Controller");
            let event = EventBody::normal("RegisteredNode", &message);
            ctx.record(COMPONENT, recorder::node_reference(name, uid), event);
        }
        let fresh =
            || Heartbeat { uid: uid.to_owned(), status: status.clone(), lease: lease.clone(), at: ctx.now };
        let heartbeat = self.nodes.entry(name.to_owned()).or_insert_with(fresh);
        if heartbeat.status != status || heartbeat.lease != lease {
            *heartbeat = fresh();
        }
        let grace_period = match ready {
            None => NODE_STARTUP_GRACE_PERIOD,
            // `NodeMonitorGracePeriod`, nodelifecycle/config/v1alpha1/defaults.go: 50 s in 1.31 and
            // later, 40 s before.
            Some(_) if control_plane_version(ctx).at_least(31) => Duration::from_secs(50),
            Some(_) => Duration::from_secs(40),
        };
        let before = ready.map_or("", |ready| ready.status.as_str());
        let is_expired = ctx.now.since(heartbeat.at) > grace_period;
        if is_expired {
            mark_unknown(name, ctx);
        }
        match if is_expired { "Unknown" } else { before } {
            "True" => update_no_execute_taints(node, &[], &[NOT_READY, UNREACHABLE], ctx),
            "False" => update_no_execute_taints(node, &[NOT_READY], &[UNREACHABLE], ctx),
            // Without a condition, the state is not known yet.
            "Unknown" => update_no_execute_taints(node, &[UNREACHABLE], &[NOT_READY], ctx),
            _ => {}
        }
        if is_expired && before == "True" {
            let message = format!("Node {name} status is now: NodeNotReady");
            let event = EventBody::normal("NodeNotReady", &message);
            ctx.record(COMPONENT, recorder::node_reference(name, uid), event);
            mark_pods_not_ready(name, ctx);
        }
    }
}

/// Swaps the `NoExecute` taints of a node, unless they are up to date.
fn update_no_execute_taints(node: &Value, add: &[&str], remove: &[&str], ctx: &mut ControllerContext) {
    const EFFECT: &str = "NoExecute";
    let taints = node.taints();
    let has = |key: &&str| taints.iter().any(|taint| taint.key == **key && taint.effect == EFFECT);
    if !add.iter().all(has) || remove.iter().any(has) {
        taints::swap(node.name(), EFFECT, add, remove, ctx);
    }
}

/// Sets the conditions of a node to `Unknown`.
fn mark_unknown(node: &str, ctx: &mut ControllerContext) {
    let now = Some(ctx.epoch().meta_time(ctx.now));
    ctx.store.update(Kind::Node, "", node, |node| {
        let created = node.created().map(meta::v1::Time);
        node.status_mut().change("conditions", |conditions: &mut Vec<NodeCondition>| {
            for kind in HEARTBEAT_CONDITIONS {
                let unknown = |reason: &str, message: &str| NodeCondition {
                    type_: kind.to_owned(),
                    status: "Unknown".to_owned(),
                    reason: Some(reason.to_owned()),
                    message: Some(message.to_owned()),
                    last_transition_time: now.clone(),
                    last_heartbeat_time: created.clone(),
                };
                match conditions.iter_mut().find(|condition| condition.type_ == kind) {
                    None => conditions
                        .push(unknown("NodeStatusNeverUpdated", "Kubelet never posted node status.")),
                    Some(condition) if condition.status != "Unknown" => {
                        *condition = NodeCondition {
                            last_heartbeat_time: condition.last_heartbeat_time.take(),
                            ..unknown("NodeStatusUnknown", "Kubelet stopped posting node status.")
                        };
                    }
                    Some(_) => {}
                }
            }
        });
    });
}

/// Marks the pods of an unreachable node as not ready (`MarkPodsNotReady`).
fn mark_pods_not_ready(node: &str, ctx: &mut ControllerContext) {
    let pods: Vec<_> = ctx.store.pods_on(node).cloned().collect();
    let now = ctx.epoch().meta_time(ctx.now);
    for pod in pods.iter().filter(|pod| pod.has_condition("Ready")) {
        ctx.store.update(Kind::Pod, pod.namespace(), pod.name(), |pod| {
            pod.status_mut().change("conditions", |conditions: &mut Vec<PodCondition>| {
                for ready in conditions.iter_mut().filter(|condition| condition.kind == "Ready") {
                    ready.status = ConditionStatus::False;
                    ready.last_transition_time = Some(now.clone());
                }
            });
        });
        let event = EventBody::warning("NodeNotReady", "Node is not ready");
        ctx.record(COMPONENT, recorder::object_reference(Kind::Pod, pod), event);
    }
}
