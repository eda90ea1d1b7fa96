//! Operations on a node of an existing cluster. Operations that would change its kubelet fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use evictlab_fault::Fault;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::error::ExistingError;
use super::probe::probe;
use super::probe_pod::ProbePod;
use crate::node::{ConfigureError, ExternalNode, NodeBackend, NodeError};
use crate::workload::Namespace;

/// A node of an existing cluster.
pub(super) struct ExistingNode {
    /// Name of the node.
    pub(super) node: String,
    /// Restrictions of the node.
    pub(super) external: ExternalNode,
    /// Namespace of probe pods.
    pub(super) namespace: Arc<Namespace>,
    /// Image of probe pods.
    pub(super) image: String,
    /// Images that the node could not pull, with the reasons.
    pub(super) unavailable: Mutex<BTreeMap<String, String>>,
}

impl NodeBackend for ExistingNode {
    fn external(&self) -> Option<&ExternalNode> {
        Some(&self.external)
    }

    fn unavailable_images(&self) -> BTreeMap<String, String> {
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn configure<'a>(&'a self, _: &'a Map<String, Value>) -> LocalBoxFuture<'a, Result<(), ConfigureError>> {
        ready(Err(ConfigureError::Node(NodeError::NotManaged(self.node.clone())))).boxed_local()
    }

    fn restart_kubelet(&self) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(self.allow_only_if(false)).boxed_local()
    }

    /// The flags of the kubelet are not accessible; it is assumed to have the default interval.
    fn has_fresh_statistics(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(Ok(false)).boxed_local()
    }

    fn restore_config(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(Ok(false)).boxed_local()
    }

    fn confirm_restored(&self) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(Ok(())).boxed_local()
    }

    fn kubelet_log(&self, _: Timestamp) -> LocalBoxFuture<'_, Result<Option<Vec<String>>, NodeError>> {
        ready(Ok(None)).boxed_local()
    }

    fn log_tail(&self) -> LocalBoxFuture<'_, Result<String, NodeError>> {
        ready(Ok("(kubelet logs of existing clusters are not accessible)".to_owned())).boxed_local()
    }

    /// Memory of the kernel under the node. For nodes that are containers on one host, it may be
    /// less than the memory that each node reports.
    fn host_memory(&self) -> LocalBoxFuture<'_, Result<u64, NodeError>> {
        async {
            let invalid = |problem: String| NodeError::InvalidResponse {
                operation: "read the available memory",
                node: self.node.clone(),
                problem,
            };
            let probed = probe(&self.namespace, &self.node, &self.image).await;
            let probed = probed.map_err(|error| invalid(error.to_string()))?;
            probed.available.ok_or_else(|| invalid("/proc/meminfo has no MemAvailable".to_owned()))
        }
        .boxed_local()
    }

    fn limit_memory(&self, bytes: Option<u64>) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(self.allow_only_if(bytes.is_none())).boxed_local()
    }

    fn pause(&self, paused: bool) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(self.allow_only_if(!paused)).boxed_local()
    }

    fn static_pods<'a>(&'a self, pods: &'a [Value]) -> LocalBoxFuture<'a, Result<(), NodeError>> {
        ready(self.allow_only_if(pods.is_empty())).boxed_local()
    }

    fn inject_faults(&self, _: &[Fault], _: &str) -> Result<(), NodeError> {
        Err(NodeError::FaultsUnsupported(self.node.clone()))
    }
}

impl ExistingNode {
    /// Makes the node pull an image. An image that cannot be pulled is recorded: cases that need it
    /// are skipped. `index` makes the name of the pod unique.
    pub(super) async fn pull(&self, image: &str, index: usize) -> Result<(), ExistingError> {
        let name = format!("image{index}-{}", self.node);
        let pod = ProbePod { namespace: &self.namespace, node: &self.node, name, image, command: &["true"] };
        match pod.wait_for_image().await {
            Err(ExistingError::Image { image, reason, .. }) => {
                self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).insert(image, reason);
                Ok(())
            }
            done => done,
        }
    }

    /// Rejects operations that would change the node; allows those that have no effect.
    fn allow_only_if(&self, no_effect: bool) -> Result<(), NodeError> {
        if no_effect { Ok(()) } else { Err(NodeError::NotManaged(self.node.clone())) }
    }
}
