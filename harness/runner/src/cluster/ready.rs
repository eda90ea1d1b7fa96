//! The nodes of a cluster until each is ready.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as ApiNode, NodeCondition};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::ClusterError;
use crate::wait::{self, Probe};

/// How long a cluster may show no change at all before it is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// How long an API server may send nothing before it is taken for gone. Watches hear from it about once a minute at least.
pub(super) const SILENCE: Duration = Duration::from_secs(90);

/// Waits until `count` nodes are there and all are ready.
pub(super) async fn ready(client: &Client, cluster: &str, count: usize) -> Result<(), ClusterError> {
    let nodes: Api<ApiNode> = Api::all(client.clone());
    wait::until(PATIENCE, Duration::from_millis(250), async || {
        match nodes.list(&ListParams::default()).await {
            Err(error) => Probe::Pending(error.to_string()),
            Ok(listed) => {
                let waiting: Vec<String> = listed
                    .iter()
                    .filter(|node| !is_ready(node))
                    .map(|node| format!("{} is not ready{}", node.name_any(), why(node)))
                    .collect();
                match listed.items.len() >= count && waiting.is_empty() {
                    true => Probe::Done(()),
                    false => Probe::Pending(format!(
                        "{} of {count} nodes; {}",
                        listed.items.len(),
                        waiting.join(", ")
                    )),
                }
            }
        }
    })
    .await
    .map_err(|stalled| ClusterError::NotReady { cluster: cluster.to_owned(), stalled })
}

/// Whether a node reports itself ready.
pub fn is_ready(node: &ApiNode) -> bool {
    ready_condition(node).is_some_and(|condition| condition.status == "True")
}

/// When a node's kubelet told its status last, to the second.
pub fn heard_of(node: &ApiNode) -> Option<Timestamp> {
    Some(ready_condition(node)?.last_heartbeat_time.as_ref()?.0)
}

fn ready_condition(node: &ApiNode) -> Option<&NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == "Ready")
}

fn why(node: &ApiNode) -> String {
    let message = ready_condition(node).and_then(|condition| condition.message.clone());
    message.map(|message| format!(" ({message})")).unwrap_or_default()
}
