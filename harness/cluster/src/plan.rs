//! Clusters that a run is going to use, and the conditions of their teardown.

use crate::error::ClusterError;
use crate::kubelet::Kubelet;

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

/// Requirements of the cases of a run, for every node.
#[derive(Clone, Debug, Default)]
pub struct NodeRequirements {
    /// Full names of the images of all cases.
    pub images: Vec<String>,
    /// A case has pressure on the disk: where possible, nodes of new clusters get file systems of
    /// their own.
    pub own_disks: bool,
}

/// Receivers of the progress of a cluster that is being created or opened.
#[derive(Clone, Copy)]
pub struct ClusterProgress<'a> {
    /// Receives one line per step.
    pub step: &'a dyn Fn(&str),
    /// Receives each problem that delays the nodes, in one line, and an instruction in a second
    /// one. Waiting continues.
    pub warning: &'a dyn Fn(&str),
}

impl ClusterProgress<'static> {
    /// Receives nothing.
    pub const SILENT: Self = Self { step: &|_| {}, warning: &|_| {} };
}

/// State of a run at the teardown of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct TeardownContext {
    /// True if the nodes became usable.
    pub usable: bool,
    /// True if a verdict on this cluster needs attention, or the cluster itself failed.
    pub needs_attention: bool,
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
