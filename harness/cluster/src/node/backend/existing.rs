//! Operations on a node of an existing cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::node::error::NodeError;
use crate::node::external::ExternalNode;
use crate::probe::{POD_TIMEOUT, ProbeError, ProbePod, ProbePods, probe};
use crate::run_lease::RunLease;

/// A node of an existing cluster.
pub struct ExistingNode {
    /// Name of the node.
    pub(crate) node: String,
    /// Restrictions of the node.
    pub(crate) external: ExternalNode,
    /// Probe pods of the run.
    pub(crate) pods: Arc<ProbePods>,
    /// Lease of the run, which holds the node.
    pub(crate) lease: Arc<RunLease>,
    /// Image of probe pods.
    pub(crate) image: String,
    /// Images that the node could not pull, with the reasons.
    pub(crate) unavailable: Mutex<BTreeMap<String, String>>,
}

impl ExistingNode {
    pub(super) fn unavailable_images(&self) -> BTreeMap<String, String> {
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn confirm_held(&self) -> Result<(), NodeError> {
        let confirmed = self.lease.confirm().await;
        confirmed.map_err(|lost| NodeError::NotHeld { node: self.node.clone(), lost })
    }

    /// Memory of the kernel under the node. For nodes that are containers on one host, it may be
    /// less than the memory that each node reports.
    pub(super) async fn host_memory(&self) -> Result<u64, NodeError> {
        let invalid = |problem: String| NodeError::InvalidResponse {
            operation: "read the available memory",
            node: self.node.clone(),
            problem,
        };
        let probed = probe(&self.pods, &self.node, &self.image).await;
        let probed = probed.map_err(|error| invalid(error.to_string()))?;
        probed.available.ok_or_else(|| invalid("/proc/meminfo has no MemAvailable".to_owned()))
    }

    /// Makes the node pull an image. An image that cannot be pulled is recorded: cases that need it
    /// are skipped. `index` makes the name of the pod unique.
    pub(crate) async fn pull(&self, image: &str, index: usize) -> Result<(), ProbeError> {
        let name = format!("image{index}-{}", self.node);
        let (node, command, timeout) = (&self.node, &["true"], POD_TIMEOUT);
        match self.pods.wait_for_image(&ProbePod { node, name, image, command, timeout }).await {
            Err(ProbeError::Image { image, reason, .. }) => {
                self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).insert(image, reason);
                Ok(())
            }
            done => done,
        }
    }

    /// Rejects operations that would change the node; allows those that have no effect.
    pub(super) fn allow_only_if(&self, no_effect: bool) -> Result<(), NodeError> {
        if no_effect { Ok(()) } else { Err(self.not_managed()) }
    }

    /// Error of an operation that would change the node.
    pub(super) fn not_managed(&self) -> NodeError {
        NodeError::NotManaged(self.node.clone())
    }
}
