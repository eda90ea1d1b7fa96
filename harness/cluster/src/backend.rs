//! Backends: sources of the clusters of a run.
//!
//! [`Backend`] and [`ClusterHandle`] are traits and not enums: the runner sees only this module,
//! which does not depend on the backends that implement it.

use evictlab_fault::Fault;
use evictlab_report::Model;
use futures::future::LocalBoxFuture;
use tokio_util::sync::CancellationToken;

use crate::error::ClusterError;
use crate::kubelet::Kubelet;
use crate::node::Node;

/// A cluster that a run is going to use.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// Name of the cluster.
    pub name: String,
    /// Kubelets of its workers.
    pub kubelets: Vec<Kubelet>,
    /// True if the cluster exists already.
    pub reused: bool,
}

/// State of a run at the teardown of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct TeardownContext {
    /// True if the nodes became usable.
    pub usable: bool,
    /// True if the run had a failure so far.
    pub failed: bool,
    /// True if the run was interrupted.
    pub interrupted: bool,
}

/// Result of the teardown of a cluster.
#[derive(Debug, Default)]
pub struct TeardownOutcome {
    /// Reason that the cluster was kept; `None` if it was deleted.
    pub kept: Option<&'static str>,
    /// Error of the deletion or the restoration.
    pub error: Option<ClusterError>,
}

/// A source of clusters.
pub trait Backend {
    /// Name in reports.
    fn name(&self) -> &'static str;

    /// Clusters of the run, in the order of their use.
    fn plans(&self) -> &[ClusterPlan];

    /// Description of the model; `None` for real kubelets.
    fn model(&self) -> Option<Model>;

    /// Faults of every case in addition to its own; `None` if the backend does not support faults.
    fn faults(&self) -> Option<&[Fault]>;

    /// Returns whether all nodes share the memory and the disk of one host.
    fn is_one_host(&self) -> bool;

    /// Creates or opens a cluster and loads images, given by full name, into all its nodes. `step`
    /// receives one line per step.
    fn open<'a>(
        &'a self,
        plan: &'a ClusterPlan,
        images: &'a [String],
        cancel: &'a CancellationToken,
        step: &'a dyn Fn(&str),
    ) -> LocalBoxFuture<'a, Result<Box<dyn ClusterHandle>, ClusterError>>;

    /// Removes the remains of a cluster whose [`Backend::open`] failed or was cancelled. Returns
    /// `None` if nothing of the cluster belongs to the run.
    fn clear<'a>(
        &'a self,
        plan: &'a ClusterPlan,
        teardown: TeardownContext,
    ) -> LocalBoxFuture<'a, Option<TeardownOutcome>>;
}

/// A cluster in use by a run.
pub trait ClusterHandle {
    /// Ready workers, with the labels of the requested kubelets.
    fn nodes(&self) -> &[Node];

    /// Deletes the cluster, or restores its nodes and keeps it. Returns `None` if the cluster does
    /// not belong to the run any more.
    fn end(self: Box<Self>, teardown: TeardownContext) -> LocalBoxFuture<'static, Option<TeardownOutcome>>;
}
