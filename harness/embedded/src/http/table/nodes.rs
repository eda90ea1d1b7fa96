//! Table of nodes (`printNode`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::fields::{items, text, text_or};

/// Returns the cells of a node.
pub(crate) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let ready = items(node, "/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    let mut status = match ready {
        None => "Unknown".to_owned(),
        Some(ready) if ready["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
    };
    if node["spec"]["unschedulable"].as_bool() == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = items(node, "/status/addresses").iter().find(|address| address["type"] == kind);
        found.map_or("<none>", |address| text(address, "/address"))
    };
    vec![
        node["metadata"]["name"].clone(),
        json!(status),
        json!(roles(node)),
        json!(age(&node["metadata"]["creationTimestamp"], now)),
        json!(text(node, "/status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(text_or(node, "/status/nodeInfo/osImage", "<unknown>")),
        json!(text_or(node, "/status/nodeInfo/kernelVersion", "<unknown>")),
        json!(text_or(node, "/status/nodeInfo/containerRuntimeVersion", "<unknown>")),
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
