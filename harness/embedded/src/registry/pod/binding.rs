//! A pod gets its node.

use serde_json::{Value, json};

use super::super::Status;
use super::super::condition::Condition;
use crate::store::Kind;
use crate::world::Ctx;

/// Binds a pod: `BindingREST.assignPod`.
pub(in super::super) fn bind(ctx: &mut Ctx, namespace: &str, name: &str, node: &str) -> Result<(), Status> {
    let mut pod = Value::clone(&*super::super::found(ctx, Kind::Pod, namespace, name)?);
    let refused = if pod["metadata"]["deletionTimestamp"].is_string() {
        Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if let Some(other) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        Some(format!("pod {name} is already assigned to node {other:?}"))
    } else if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        Some(format!("pod {name} has non-empty .spec.schedulingGates"))
    } else {
        None
    };
    if let Some(why) = refused {
        return Err(Status {
            code: 409,
            reason: "Conflict",
            message: format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}"),
            details: Some(json!({"name": name, "kind": "pods/binding"})),
        });
    }
    pod["spec"]["nodeName"] = json!(node);
    // `ClearingNominatedNodeNameAfterBinding`, KEP-5278, since 1.34. Before, the name stayed; nothing reads it then.
    if let Some(status) = pod["status"].as_object_mut() {
        status.shift_remove("nominatedNodeName");
    }
    let now = ctx.epoch().seconds(ctx.now);
    Condition { kind: "PodScheduled", status: "True", reason: "", message: "" }.set(&mut pod, &now, None);
    super::super::replace(ctx, Kind::Pod, name, pod).map(|_| ())
}
