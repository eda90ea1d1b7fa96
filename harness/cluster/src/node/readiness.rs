//! Readiness of nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as ApiNode, NodeCondition};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use crate::wait::{self, Probe, Stalled};

/// Maximum time without any change while the nodes of a cluster become ready.
const NODES_READY_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum time between two reads from the API server. Watches receive data, or bookmarks, at least
/// about once a minute.
pub(crate) const API_READ_TIMEOUT: Duration = Duration::from_secs(90);

/// Waits until the cluster has at least `count` nodes and all its nodes are ready.
///
/// # Errors
/// The state of the nodes has not changed for [`NODES_READY_TIMEOUT`].
pub(crate) async fn wait_until_ready(client: &Client, count: usize) -> Result<(), Stalled> {
    let nodes: Api<ApiNode> = Api::all(client.clone());
    wait::until(NODES_READY_TIMEOUT, Duration::from_millis(250), async || {
        let listed = match nodes.list(&ListParams::default()).await {
            Err(error) => return Probe::Pending(error.to_string()),
            Ok(listed) => listed,
        };
        let waiting: Vec<String> = listed
            .iter()
            .filter(|node| !is_ready(node))
            .map(|node| format!("{} is not ready{}", node.name_any(), message(node)))
            .collect();
        match listed.items.len() >= count && waiting.is_empty() {
            true => Probe::Done(()),
            false => {
                Probe::Pending(format!("{} of {count} nodes; {}", listed.items.len(), waiting.join(", ")))
            }
        }
    })
    .await
}

/// Message of the condition `Ready` of each registered node; `None` of nodes that are ready.
pub(crate) async fn ready_messages(client: &Client) -> kube::Result<BTreeMap<String, Option<String>>> {
    let nodes: Api<ApiNode> = Api::all(client.clone());
    let listed = nodes.list(&ListParams::default()).await?;
    let message = |node: &ApiNode| ready_condition(node).and_then(|condition| condition.message.clone());
    let of = |node: ApiNode| {
        let message = (!is_ready(&node)).then(|| message(&node).unwrap_or_default());
        (node.name_any(), message)
    };
    Ok(listed.into_iter().map(of).collect())
}

/// Returns whether the condition `Ready` of a node is `True`.
pub fn is_ready(node: &ApiNode) -> bool {
    ready_condition(node).is_some_and(|condition| condition.status == "True")
}

/// Last heartbeat of the kubelet, in whole seconds.
pub fn last_heartbeat(node: &ApiNode) -> Option<Timestamp> {
    Some(ready_condition(node)?.last_heartbeat_time.as_ref()?.0)
}

fn ready_condition(node: &ApiNode) -> Option<&NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == "Ready")
}

fn message(node: &ApiNode) -> String {
    let message = ready_condition(node).and_then(|condition| condition.message.clone());
    message.map(|message| format!(" ({message})")).unwrap_or_default()
}
