//! Backends: sources of the clusters of a run.

use evictlab_fault::Fault;
use evictlab_report::{BackendName, Model};
use tokio_util::sync::CancellationToken;

use crate::embedded::{EmbeddedBackend, EmbeddedHandle};
use crate::error::ClusterError;
use crate::existing::{ExistingBackend, ExistingHandle};
use crate::kind::{KindBackend, KindHandle};
use crate::node::Node;
use crate::plan::{ClusterPlan, ClusterProgress, NodeRequirements, TeardownContext, TeardownOutcome};
use crate::run_lease::LeaseLost;

/// A source of clusters.
pub enum Backend {
    /// Modelled kubelets.
    Embedded(EmbeddedBackend),
    /// Real kubelets in Docker containers.
    Kind(KindBackend),
    /// A cluster that evictlab does not manage.
    Existing(ExistingBackend),
}

impl Backend {
    /// Name in reports.
    pub fn name(&self) -> BackendName {
        match self {
            Self::Embedded(_) => BackendName::Embedded,
            Self::Kind(_) => BackendName::Kind,
            Self::Existing(_) => BackendName::Existing,
        }
    }

    /// Clusters of the run, in the order of their use.
    pub fn plans(&self) -> &[ClusterPlan] {
        match self {
            Self::Embedded(backend) => &backend.plans,
            Self::Kind(backend) => &backend.plans,
            Self::Existing(backend) => &backend.plans,
        }
    }

    /// Names of the nodes of a kubelet, by its label; empty if the nodes are named when the cluster
    /// is created.
    pub fn node_names(&self, kubelet: &str) -> Vec<String> {
        match self {
            Self::Embedded(backend) => backend.node_names(kubelet),
            Self::Kind(_) => vec![],
            Self::Existing(backend) => backend.node_names(kubelet),
        }
    }

    /// Description of the model; `None` for real kubelets.
    pub fn model(&self) -> Option<Model> {
        match self {
            Self::Embedded(backend) => Some(backend.model()),
            Self::Kind(_) | Self::Existing(_) => None,
        }
    }

    /// Faults of every case in addition to its own; `None` if the backend does not support faults.
    pub fn faults(&self) -> Option<&[Fault]> {
        match self {
            Self::Embedded(backend) => Some(backend.faults()),
            Self::Kind(_) | Self::Existing(_) => None,
        }
    }

    /// Returns whether all nodes share the memory and the disk of one host.
    pub fn is_one_host(&self) -> bool {
        match self {
            Self::Embedded(_) => false,
            Self::Kind(_) => true,
            Self::Existing(backend) => backend.one_host,
        }
    }

    /// Maximum number of nodes under pressure at a time; `None` for clusters that evictlab creates.
    pub fn max_nodes_under_pressure(&self) -> Option<usize> {
        match self {
            Self::Embedded(_) | Self::Kind(_) => None,
            Self::Existing(backend) => Some(backend.max_nodes_under_pressure),
        }
    }

    /// Creates or opens a cluster and prepares all its nodes.
    pub async fn open(
        &self,
        plan: &ClusterPlan,
        requirements: &NodeRequirements,
        cancel: &CancellationToken,
        progress: ClusterProgress<'_>,
    ) -> Result<ClusterHandle, ClusterError> {
        let step = progress.step;
        match self {
            Self::Embedded(backend) => backend.open(plan, cancel, step).await.map(ClusterHandle::Embedded),
            Self::Kind(backend) => backend
                .open(plan, requirements, cancel, progress)
                .await
                .map(Box::new)
                .map(ClusterHandle::Kind),
            Self::Existing(backend) => {
                backend.open(&requirements.images, cancel, step).await.map(ClusterHandle::Existing)
            }
        }
    }

    /// Removes the remains of a cluster whose [`Backend::open`] failed or was cancelled. Returns
    /// `None` if nothing of the cluster belongs to the run.
    pub async fn clear(&self, plan: &ClusterPlan, teardown: TeardownContext) -> Option<TeardownOutcome> {
        match self {
            Self::Embedded(_) => Some(TeardownOutcome::default()),
            Self::Kind(backend) => backend.clear(plan, teardown).await,
            Self::Existing(backend) => Some(backend.clear(plan).await),
        }
    }
}

/// A cluster in use by a run.
pub enum ClusterHandle {
    /// A modelled cluster.
    Embedded(EmbeddedHandle),
    /// A kind cluster.
    Kind(Box<KindHandle>),
    /// A cluster that evictlab does not manage.
    Existing(ExistingHandle),
}

impl ClusterHandle {
    /// Ready workers, with the labels of the requested kubelets.
    pub fn nodes(&self) -> &[Node] {
        match self {
            Self::Embedded(handle) => &handle.nodes,
            Self::Kind(handle) => &handle.nodes,
            Self::Existing(handle) => &handle.nodes,
        }
    }

    /// Waits until the run loses its nodes to another run; returns the reason.
    pub async fn lost(&self) -> LeaseLost {
        match self {
            Self::Embedded(_) | Self::Kind(_) => std::future::pending().await,
            Self::Existing(handle) => handle.lease.lost().await,
        }
    }

    /// Deletes the cluster, or restores its nodes and keeps it. Returns `None` if the cluster does
    /// not belong to the run any more.
    pub async fn end(self, teardown: TeardownContext) -> Option<TeardownOutcome> {
        match self {
            Self::Embedded(_) => Some(TeardownOutcome::default()),
            Self::Kind(handle) => handle.end(teardown).await,
            Self::Existing(handle) => Some(handle.end().await),
        }
    }
}
