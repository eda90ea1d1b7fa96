//! Readiness of nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as ApiNode, NodeCondition};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use crate::typed::Typed;
use crate::wait::{self, Poll, StalledError};

/// Maximum time without any change while the nodes of a cluster become ready.
const NODES_READY_TIMEOUT: Duration = Duration::from_secs(300);

/// Type of the condition of a node that can run pods.
const READY: &str = "Ready";

/// Waits until the cluster has at least `count` nodes and all its nodes are ready.
///
/// # Errors
/// Neither the number of nodes nor the reason of a condition `Ready` has changed for
/// [`NODES_READY_TIMEOUT`]. Messages may change with every update, as that of a runtime which does
/// not answer: `pleg was last seen active 3m22s ago`.
pub(crate) async fn wait_until_ready(client: &Client, count: usize) -> Result<(), StalledError> {
    let nodes: Api<Typed<ApiNode>> = Api::all(client.clone());
    let mut last = String::new();
    let ready = wait::until(NODES_READY_TIMEOUT, Duration::from_millis(250), async || {
        let listed = match nodes.list(&ListParams::default()).await {
            Ok(listed) => listed.items,
            Err(error) => {
                last = error.to_string();
                return Poll::Pending(last.clone());
            }
        };
        if listed.len() >= count && listed.iter().all(|node| is_ready(node)) {
            return Poll::Done(());
        }
        last = describe(&listed, count, |condition| condition.message.as_deref());
        Poll::Pending(describe(&listed, count, |condition| condition.reason.as_deref()))
    });
    let ready = ready.await;
    ready.map_err(|stalled| stalled.with_last(last))
}

/// Describes nodes of which some are missing or not ready, with a detail of their condition
/// `Ready`: `1 of 2 nodes; el-worker is not ready (DETAIL)`.
fn describe(nodes: &[Typed<ApiNode>], count: usize, detail: fn(&NodeCondition) -> Option<&str>) -> String {
    let unready: Vec<String> = nodes
        .iter()
        .filter(|node| !is_ready(node))
        .map(|node| match find_condition(node, READY).and_then(detail) {
            Some(detail) => format!("{} is not ready ({detail})", node.name_any()),
            None => format!("{} is not ready", node.name_any()),
        })
        .collect();
    let number = format!("{} of {count} nodes", nodes.len());
    if unready.is_empty() { number } else { format!("{number}; {}", unready.join(", ")) }
}

/// Message of the condition `Ready` of each registered node; `None` of nodes that are ready.
pub(crate) async fn ready_messages(client: &Client) -> kube::Result<BTreeMap<String, Option<String>>> {
    let nodes: Api<Typed<ApiNode>> = Api::all(client.clone());
    let listed = nodes.list(&ListParams::default()).await?;
    let named = |node: Typed<ApiNode>| {
        let message = find_condition(&node, READY).and_then(|condition| condition.message.clone());
        (node.name_any(), (!is_ready(&node)).then(|| message.unwrap_or_default()))
    };
    Ok(listed.into_iter().map(named).collect())
}

/// Returns whether the condition `Ready` of a node is `True`.
pub fn is_ready(node: &ApiNode) -> bool {
    has_condition(node, READY)
}

/// Returns whether a condition of the node is `True`.
pub fn has_condition(node: &ApiNode, condition: &str) -> bool {
    find_condition(node, condition).is_some_and(|found| found.status == "True")
}

/// Time of the last heartbeat of the kubelet; the API truncates it to seconds.
pub fn last_heartbeat(node: &ApiNode) -> Option<Timestamp> {
    Some(find_condition(node, READY)?.last_heartbeat_time.as_ref()?.0)
}

fn find_condition<'a>(node: &'a ApiNode, name: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == name)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// A node whose condition `Ready` has this status and message.
    fn node(status: &str, message: &str) -> Value {
        let condition =
            json!({"type": "Ready", "status": status, "reason": "KubeletNotReady", "message": message});
        json!({"metadata": {"name": "el-worker"}, "status": {"conditions": [condition]}})
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_always_changes_is_not_progress() {
        let requests = AtomicU32::new(0);
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let seconds = requests.fetch_add(1, Ordering::Relaxed);
            let node = node("False", &format!("pleg was last seen active {seconds}s ago"));
            let list = json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [node]});
            async move { Ok::<_, Infallible>(http::Response::new(Body::from(list.to_string().into_bytes()))) }
        });
        let client = Client::new(service, "default");
        let ready = tokio::time::timeout(NODES_READY_TIMEOUT * 2, wait_until_ready(&client, 1)).await;
        let stalled = ready.expect("the wait does not end").unwrap_err();
        let message = "1 of 1 nodes; el-worker is not ready (pleg was last seen active ";
        assert!(stalled.last.starts_with(message), "{stalled}");
    }

    #[test]
    fn describes_missing_and_unready_nodes() {
        let nodes = [serde_json::from_value(node("True", "")).unwrap()];
        assert_eq!(describe(&nodes, 2, |_| None), "1 of 2 nodes");
        let nodes = [serde_json::from_value(node("Unknown", "no heartbeat")).unwrap()];
        let text = describe(&nodes, 2, |condition| condition.reason.as_deref());
        assert_eq!(text, "1 of 2 nodes; el-worker is not ready (KubeletNotReady)");
    }
}
