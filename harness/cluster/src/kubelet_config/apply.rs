//! Applies a configuration to a node and verifies that the kubelet uses it.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::difference::differences;
use crate::node::{ConfigureError, Node};
use crate::wait::{self, Poll};

/// Maximum time without any change while a restarted kubelet comes up.
const KUBELET_START_TIMEOUT: Duration = Duration::from_secs(90);

/// Result of [`configure`].
#[derive(Clone, Debug)]
pub struct AppliedConfig {
    /// Complete configuration of the running kubelet, from `/configz`.
    pub configz: Value,
    /// Duration of the configuration in seconds.
    pub seconds: f64,
    /// Time from the start of the configuration until the kubelet with the earlier one had exited.
    pub stopped_after: Duration,
}

/// Applies changes to the node's original kubelet configuration, restarts the kubelet, and returns
/// the configuration that it runs with.
///
/// Maps are merged; all other values are replaced. Every call starts from the original
/// configuration: changes of earlier calls are discarded.
pub async fn configure(node: &Node, changes: &Map<String, Value>) -> Result<AppliedConfig, ConfigureError> {
    let started = Instant::now();
    node.backend().configure(changes).await?;
    let stopped_after = started.elapsed();
    let configz = wait_until_applied(node, changes).await?;
    Ok(AppliedConfig { configz, seconds: started.elapsed().as_secs_f64(), stopped_after })
}

/// Returns whether the running kubelet already has these fields and the short housekeeping
/// interval, as in a cluster created from evictlab's own kind configuration.
pub async fn is_configured(node: &Node, fields: &Map<String, Value>) -> Result<bool, ConfigureError> {
    if !differences(fields, &node.configz().await?).is_empty() {
        return Ok(false);
    }
    Ok(node.backend().has_short_housekeeping_interval().await?)
}

/// Waits until a kubelet that something else has restarted answers.
pub async fn wait_until_running(node: &Node) -> Result<(), ConfigureError> {
    wait_until_applied(node, &Map::new()).await.map(drop)
}

/// Restarts the kubelet with its present configuration, and returns when it answers.
pub async fn restart(node: &Node) -> Result<(), ConfigureError> {
    node.backend().restart_kubelet().await?;
    wait_until_running(node).await
}

/// Restores the node's original kubelet configuration. Returns `false` if it was not changed.
pub async fn restore(node: &Node) -> Result<bool, ConfigureError> {
    if !node.backend().restore_config().await? {
        return Ok(false);
    }
    wait_until_running(node).await?;
    node.backend().confirm_restored().await?;
    Ok(true)
}

/// Polls `/configz` until it contains the changes. The backend returns only after the old kubelet
/// has exited, so every response is from the new one.
async fn wait_until_applied(node: &Node, changes: &Map<String, Value>) -> Result<Value, ConfigureError> {
    let poll = async || match node.configz().await {
        Err(error) => Poll::Pending(error.to_string()),
        Ok(configz) => {
            let missing = differences(changes, &configz);
            if missing.is_empty() {
                return Poll::Done(configz);
            }
            Poll::Pending(missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
    };
    match wait::until(KUBELET_START_TIMEOUT, Duration::from_millis(100), poll).await {
        Ok(configz) => Ok(configz),
        Err(stalled) => {
            let log = node.backend().log_tail().await?;
            Err(ConfigureError::NotApplied { node: node.name.clone(), stalled, log })
        }
    }
}
