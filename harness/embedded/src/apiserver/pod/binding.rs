//! Binding of pods to nodes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusDetails;
use serde_json::{Value, json};

use crate::apiserver::objects::{find, replace};
use crate::apiserver::options::ObjectPath;
use crate::apiserver::status::Status;
use crate::context::SimContext;
use crate::resource::condition::Condition;
use crate::resource::{Kind, ObjectExt};

/// Binds a pod to a node (`BindingREST.assignPod`).
///
/// # Errors
/// 404 if the pod does not exist, 409 if it has a node or is being deleted.
pub fn bind(ctx: &mut SimContext, namespace: &str, name: &str, node: &str) -> Result<(), Status> {
    let mut pod = Value::clone(&*find(ctx, ObjectPath { kind: Kind::Pod, namespace, name })?);
    let conflict = if pod.is_deleting() {
        Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if let Some(other) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        Some(format!("pod {name} is already assigned to node {other:?}"))
    } else {
        None
    };
    if let Some(conflict) = conflict {
        let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {conflict}");
        return Err(Status::new(409, "Conflict", message).with_details(StatusDetails {
            name: Some(name.to_owned()),
            kind: Some("pods/binding".to_owned()),
            ..StatusDetails::default()
        }));
    }
    pod["spec"]["nodeName"] = json!(node);
    // `ClearingNominatedNodeNameAfterBinding` (KEP-5278) since 1.34. Before, the name stayed, but
    // nothing reads it after the binding.
    pod["status"].remove("nominatedNodeName");
    let now = ctx.epoch().seconds(ctx.now);
    Condition { kind: "PodScheduled", status: "True", reason: "", message: "" }.set(&mut pod, &now, None);
    replace(ctx, Kind::Pod, name, pod).map(|_| ())
}
