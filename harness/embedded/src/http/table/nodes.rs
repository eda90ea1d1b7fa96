//! Table of nodes (`printNode`).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeStatus;
use serde_json::{Value, json};

use super::age::age;
use crate::resource::ObjectExt;

/// Returns the cells of a node.
pub(crate) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let status: NodeStatus = node.read("status");
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
    let ready = match ready {
        None => "Unknown",
        Some(ready) if ready.status == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let cordoned = if node.is_unschedulable() { ",SchedulingDisabled" } else { "" };
    let address = |kind: &str| {
        let found = status.addresses.iter().flatten().find(|address| address.type_ == kind);
        found.map_or("<none>", |address| address.address.as_str())
    };
    let info = status.node_info.clone().unwrap_or_default();
    let known = |text: String| if text.is_empty() { "<unknown>".to_owned() } else { text };
    vec![
        json!(node.name()),
        json!(format!("{ready}{cordoned}")),
        json!(roles(node.metadata().read("labels"))),
        json!(age(node.created(), now)),
        json!(info.kubelet_version),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(known(info.os_image)),
        json!(known(info.kernel_version)),
        json!(known(info.container_runtime_version)),
    ]
}

/// Returns the roles in the labels of a node (`findNodeRoles`).
fn roles(labels: BTreeMap<String, String>) -> String {
    let role = |(key, value): (String, String)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None => (key == "kubernetes.io/role").then_some(value),
    };
    let roles: BTreeSet<String> =
        labels.into_iter().filter_map(role).filter(|role| !role.is_empty()).collect();
    if roles.is_empty() { "<none>".into() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}
