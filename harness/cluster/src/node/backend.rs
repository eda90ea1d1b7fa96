//! Operations on a node that bypass its API server.

use std::collections::BTreeMap;

use evictlab_fault::Fault;
use futures::future::LocalBoxFuture;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::error::{ConfigureError, NodeError};

/// Restrictions of a node in a cluster that evictlab does not manage. Its kubelet is never changed.
#[derive(Clone, Debug)]
pub struct ExternalNode {
    /// Reason that no case may put the node under pressure; `None` if cases may.
    pub pressure_forbidden: Option<PressureForbidden>,
    /// Nodes on the same kernel that no case may put under pressure. They share disk and process
    /// ids with this node.
    pub shared_kernel_nodes: Vec<String>,
    /// Maximum memory or disk that a case may consume, in bytes.
    pub max_pressure_bytes: u64,
}

/// Reason that no case may put a node under pressure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PressureForbidden {
    /// `--allow-disruption` is not set.
    #[error("the case puts a node under pressure, which takes --allow-disruption")]
    NotAllowed,
    /// The node is neither selected nor tainted.
    #[error(
        "the case puts a node under pressure, and this node is neither selected (--node-selector) nor tainted"
    )]
    NotDedicated,
    /// Pods of other users are running on the node.
    #[error(
        "the case puts a node under pressure, and this node runs other pods ({}): select it (--node-selector) if they may be evicted",
        abbreviate(.0)
    )]
    InUse(Vec<String>),
}

/// The first two names, and the number of the others.
fn abbreviate(names: &[String]) -> String {
    match names {
        [one, two, _, rest @ ..] => format!("{one}, {two} and {} more", rest.len() + 1),
        few => few.join(", "),
    }
}

/// The machine under a node, as the backend of its cluster can reach it.
///
/// A trait and not an enum: [`super::Node`] belongs to a lower layer than the backends, which
/// implement this trait and create nodes.
pub trait NodeBackend: Send + Sync {
    /// Restrictions of a node that evictlab does not manage; `None` for a managed node.
    fn external(&self) -> Option<&ExternalNode> {
        None
    }

    /// Images that the node could not pull, with the reasons.
    fn unavailable_images(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Applies changes to the node's original kubelet configuration, sets a short housekeeping
    /// interval, and restarts the kubelet. Returns when the old kubelet has exited.
    ///
    /// Maps are merged; all other values are replaced. Changes of earlier calls are discarded.
    fn configure<'a>(
        &'a self,
        changes: &'a Map<String, Value>,
    ) -> LocalBoxFuture<'a, Result<(), ConfigureError>>;

    /// Restarts the kubelet with its present configuration; containers continue to run. Returns when
    /// the old kubelet has exited.
    fn restart_kubelet(&self) -> LocalBoxFuture<'_, Result<(), NodeError>>;

    /// Returns whether the running kubelet has the short housekeeping interval.
    fn has_fresh_statistics(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>>;

    /// Restores the original kubelet configuration and restarts the kubelet. Returns `false` if the
    /// configuration was not changed.
    fn restore_config(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>>;

    /// Verifies that the restored configuration is still in place, and deletes its backup.
    fn confirm_restored(&self) -> LocalBoxFuture<'_, Result<(), NodeError>>;

    /// Lines of the kubelet log since a point in time; `None` if the log is not accessible.
    fn kubelet_log(&self, since: Timestamp) -> LocalBoxFuture<'_, Result<Option<Vec<String>>, NodeError>>;

    /// Last lines of the kubelet log, for error messages.
    fn log_tail(&self) -> LocalBoxFuture<'_, Result<String, NodeError>>;

    /// Available memory of the host under the node, in bytes.
    fn host_memory(&self) -> LocalBoxFuture<'_, Result<u64, NodeError>>;

    /// Limits the memory of the whole node in bytes, which the kubelet does not see; `None` removes
    /// the limit.
    fn limit_memory(&self, bytes: Option<u64>) -> LocalBoxFuture<'_, Result<(), NodeError>>;

    /// Pauses or resumes all processes of the node. Does nothing if the node already is in the
    /// requested state.
    fn pause(&self, paused: bool) -> LocalBoxFuture<'_, Result<(), NodeError>>;

    /// Replaces the static pods of earlier calls by these.
    fn static_pods<'a>(&'a self, pods: &'a [Value]) -> LocalBoxFuture<'a, Result<(), NodeError>>;

    /// Activates faults on the node and on the objects of a namespace. Fault times count from now.
    ///
    /// # Errors
    /// The backend does not support faults.
    fn inject_faults(&self, faults: &[Fault], namespace: &str) -> Result<(), NodeError>;
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
pub(crate) fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * evictlab_rules::quantity::KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviates_long_lists_of_pods() {
        let many = ["a/1", "a/2", "a/3", "a/4"].map(str::to_owned);
        let reason = PressureForbidden::InUse(many.to_vec()).to_string();
        assert!(reason.contains("(a/1, a/2 and 2 more)"), "{reason}");
    }

    #[test]
    fn reads_available_memory() {
        let meminfo = "MemTotal:       24000000 kB\nMemAvailable:   20480 kB\n";
        assert_eq!(available_memory(meminfo), Some(20 << 20));
        assert_eq!(available_memory("MemTotal: 1 kB\n"), None);
    }
}
