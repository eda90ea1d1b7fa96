//! Where the nodes of a run come from.

use evictlab_embedded::fault::Fault;
use futures::future::LocalBoxFuture;
use tokio_util::sync::CancellationToken;

use super::{ClusterError, Kubelet, Node};
use crate::report::Model;

/// A cluster of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The kubelets of its workers.
    pub kubelets: Vec<Kubelet>,
    /// Whether it was there before the run.
    pub reused: bool,
}

/// How a run comes to the end of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// Whether its nodes could be used at all.
    pub usable: bool,
    /// Whether anything of the run failed so far.
    pub failed: bool,
    /// Whether the run was interrupted.
    pub interrupted: bool,
}

/// What became of a cluster.
#[derive(Debug, Default)]
pub struct Ended {
    /// Why it was kept, if it was.
    pub kept: Option<&'static str>,
    /// Why it could not be deleted or put in order.
    pub error: Option<ClusterError>,
}

/// What makes or lends clusters.
pub trait Backend {
    /// What reports call it.
    fn name(&self) -> &'static str;

    /// The clusters of the run, to be used one after the other.
    fn plans(&self) -> &[Plan];

    /// What it models; none for real kubelets.
    fn model(&self) -> Option<Model>;

    /// The faults that every case gets beside its own; none where no fault can be injected.
    fn faults(&self) -> Option<&[Fault]>;

    /// Whether all nodes share the memory and the disk of one host.
    fn is_one_host(&self) -> bool;

    /// Makes or takes a cluster, and makes sure that every node has these images, by their full names. `step` is given a line for each step.
    fn open<'a>(
        &'a self,
        plan: &'a Plan,
        images: &'a [String],
        cancel: &'a CancellationToken,
        step: &'a dyn Fn(&str),
    ) -> LocalBoxFuture<'a, Result<Box<dyn Opened>, ClusterError>>;

    /// Removes what there is of a cluster that was not opened, or not to its end. None: there is nothing of it that is the run's.
    fn clear<'a>(&'a self, plan: &'a Plan, ending: Ending) -> LocalBoxFuture<'a, Option<Ended>>;
}

/// A cluster in the hands of a run.
pub trait Opened {
    /// Its workers, ready, named by the kubelets as they were asked for.
    fn nodes(&self) -> &[Node];

    /// Deletes it, or puts its nodes back and leaves it. None: it is not the run's any more.
    fn end(self: Box<Self>, ending: Ending) -> LocalBoxFuture<'static, Option<Ended>>;
}
