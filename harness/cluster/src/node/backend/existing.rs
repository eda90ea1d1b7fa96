//! Operations on a node of an existing cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use evictlab_rules::quantity::MIB;

use crate::node::disk_room::wait_until_disk_is_short;
use crate::node::error::NodeError;
use crate::node::external::ExternalNode;
use crate::node::proxy::KubeletProxy;
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
    /// are skipped. So is one whose pull leaves the node short of disk, which is stopped. `index`
    /// makes the name of the pod unique.
    pub(crate) async fn pull(&self, image: &str, index: usize) -> Result<(), ProbeError> {
        let purpose = format!("image{index}");
        let pod = ProbePod { node: &self.node, purpose, image, command: &["true"], timeout: POD_TIMEOUT };
        let namespace = self.pods.namespace();
        let reason = tokio::select! {
            pulled = self.pods.wait_for_image(&pod) => match pulled {
                Err(ProbeError::Image { reason, .. }) => reason,
                done => return done,
            },
            room = wait_until_disk_is_short(KubeletProxy::new(namespace.client(), &self.node)) => {
                namespace.delete_pod_now(&pod.name()).await?;
                format!("the pull was stopped: {}Mi of disk were left above the eviction thresholds", room / MIB)
            }
        };
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).insert(image.to_owned(), reason);
        Ok(())
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

#[cfg(test)]
mod tests {
    use evictlab_embedded::{Cluster, ClusterOptions};
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Pod;
    use kube::client::Body;
    use kube::{Api, Client};
    use serde_json::json;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;
    use crate::workload::NamespacePurpose;

    /// The image of a pod that never gets its image takes 2 GiB of disk at each look.
    #[tokio::test(start_paused = true)]
    async fn a_pull_that_leaves_a_node_short_of_disk_is_stopped() {
        let cluster = Cluster::new(ClusterOptions::new(0, Timestamp::UNIX_EPOCH, Vec::new())).unwrap();
        let server = Client::new(cluster.router(), "default");
        let _driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.drive().await }));
        let left = Arc::new(std::sync::atomic::AtomicU64::new(8 << 30));
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (server, left) = (server.clone(), left.clone());
            async move {
                let answer = match request.uri().path().rsplit('/').next() {
                    Some("configz") => {
                        json!({"kubeletconfig": {"evictionHard": {"imagefs.available": "2Gi"}}})
                    }
                    Some("summary") => {
                        let bytes = left.fetch_sub(2 << 30, std::sync::atomic::Ordering::Relaxed);
                        let fs = json!({"availableBytes": bytes, "capacityBytes": 1u64 << 40});
                        json!({"node": {"fs": fs, "runtime": {"imageFs": fs}}})
                    }
                    _ => return server.send(request).await,
                };
                Ok(http::Response::new(Body::from(answer.to_string().into_bytes())))
            }
        });
        let client = Client::new(service, "default");
        let pods =
            ProbePods::create(&client, "a", NamespacePurpose::Lease, Default::default()).await.unwrap();
        let lease = RunLease::create(pods.namespace(), "a").await.unwrap();
        let node = ExistingNode {
            node: "n".to_owned(),
            external: ExternalNode {
                pressure_forbidden: None,
                shared_kernel_nodes: Arc::default(),
                allow_other_pods: false,
                allow_privileged: false,
                max_pressure_bytes: 0,
                scheduled_pods_preempt: false,
            },
            pods: Arc::new(pods),
            lease: Arc::new(lease),
            image: String::new(),
            unavailable: Mutex::default(),
        };
        node.pull("large:1", 0).await.unwrap();
        let reason = "the pull was stopped: 0Mi of disk were left above the eviction thresholds";
        assert_eq!(node.unavailable_images(), [("large:1".to_owned(), reason.to_owned())].into());
        let pods: Api<Pod> = Api::namespaced(client, &node.pods.namespace().name);
        assert!(pods.list(&Default::default()).await.unwrap().items.is_empty());
    }
}
