//! Table of nodes (`printNode`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use crate::resource::ObjectExt;

/// Returns the cells of a node.
pub(crate) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let ready = node.condition("Ready");
    let mut status = match ready {
        None => "Unknown".to_owned(),
        Some(ready) if ready["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
    };
    if node["spec"]["unschedulable"].as_bool() == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = node["status"].items("addresses").find(|address| address["type"] == kind);
        found.map_or("<none>", |address| address.text("address"))
    };
    vec![
        node["metadata"]["name"].clone(),
        json!(status),
        json!(roles(node)),
        json!(age(node["metadata"].time("creationTimestamp"), now)),
        json!(node["status"]["nodeInfo"].text("kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(node["status"]["nodeInfo"].text_or("osImage", "<unknown>")),
        json!(node["status"]["nodeInfo"].text_or("kernelVersion", "<unknown>")),
        json!(node["status"]["nodeInfo"].text_or("containerRuntimeVersion", "<unknown>")),
    ]
}

/// Returns the roles of a node's labels (`findNodeRoles`).
fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let role = |(key, value): (&'_ String, &'_ Value)| {
        let value = value.as_str().unwrap_or_default().to_owned();
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role.to_owned()),
            None => (key == "kubernetes.io/role").then_some(value),
        }
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    if roles.is_empty() { "<none>".into() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}
