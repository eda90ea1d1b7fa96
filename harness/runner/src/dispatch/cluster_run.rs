//! One cluster of a run: creation, preparation of its nodes, cases, teardown.

use std::rc::Rc;
use std::sync::Arc;

use evictlab_case::Pressure;
use evictlab_cluster::workload::{NamespacePurpose, StageError};
use evictlab_cluster::{
    CANARY_IMAGE, ClusterError, ClusterHandle, ClusterPlan, ClusterProgress, Node, NodeRequirements,
    ProbePods, TeardownContext, TeardownOutcome,
};
use evictlab_report::{ClusterFailureCause, RunEventKind};
use futures::{StreamExt, stream};
use tokio::time::Instant;

use crate::dispatch::run::RunContext;
use crate::node_access::run_node::{ImageNames, RunNode, RunNodeError};
use crate::node_setup::images::images_of;

/// Maximum number of nodes that are prepared at a time. Each waits for a canary pod most of the
/// time; a client of an existing cluster limits its requests.
const MAX_PREPARATIONS: usize = 250;

/// Failure to open a cluster or to prepare its nodes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Open(#[from] ClusterError),
    #[error(transparent)]
    RunNode(#[from] RunNodeError),
    #[error(transparent)]
    Canaries(#[from] StageError),
    #[error("interrupted")]
    Interrupted,
}

impl PrepareError {
    fn cause(&self) -> Option<ClusterFailureCause> {
        match self {
            Self::Open(error) => error.is_kubelet_binary().then_some(ClusterFailureCause::KubeletBinary),
            Self::RunNode(_) | Self::Canaries(_) | Self::Interrupted => None,
        }
    }
}

impl RunContext {
    /// Opens a cluster, runs all cases on it and tears it down.
    pub(super) async fn run_cluster(self: Rc<Self>, plan: &ClusterPlan) {
        let name = &plan.name;
        let began = Instant::now();
        self.failures.begin_cluster();
        self.events.send(RunEventKind::ClusterStarted {
            cluster: name.clone(),
            kubelets: plan.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect(),
            reused: plan.reused,
        });
        let mut cluster = None;
        let prepared = self.open_and_prepare(plan, &mut cluster).await;
        let usable = prepared.is_ok();
        let seconds = began.elapsed().as_secs_f64();
        match prepared {
            Ok(nodes) => {
                let version = |run_node: &Arc<RunNode>| run_node.node.version.to_string();
                self.events.send(RunEventKind::ClusterReady {
                    cluster: name.clone(),
                    seconds,
                    nodes: nodes
                        .iter()
                        .map(|run_node| (run_node.node.name.clone(), version(run_node)))
                        .collect(),
                });
                self.run_cases_while_held(plan, cluster.as_ref(), &nodes).await;
            }
            Err(error) => {
                self.failures.record_cluster_failure();
                if !self.cancel.is_cancelled() {
                    let cause = error.cause();
                    let (cluster, error) = (name.clone(), error.to_string());
                    self.events.send(RunEventKind::ClusterFailed { cluster, seconds, error, cause });
                }
            }
        }
        self.tear_down(plan, cluster, usable).await;
    }

    /// Runs the cases, and ends them as soon as the run has lost its nodes to another run.
    async fn run_cases_while_held(
        self: &Rc<Self>,
        plan: &ClusterPlan,
        cluster: Option<&ClusterHandle>,
        nodes: &[Arc<RunNode>],
    ) {
        let began = Instant::now();
        let lost = async {
            match cluster {
                Some(cluster) => cluster.lost().await,
                None => std::future::pending().await,
            }
        };
        let cases = self.run_cases(plan, nodes);
        tokio::pin!(cases);
        tokio::select! {
            () = &mut cases => {}
            lost = lost => {
                self.failures.record_cluster_failure();
                let (cluster, seconds) = (plan.name.clone(), began.elapsed().as_secs_f64());
                let error = lost.to_string();
                self.events.send(RunEventKind::ClusterFailed { cluster, seconds, error, cause: None });
                self.cancel.cancel();
                cases.await;
            }
        }
    }

    /// Opens the cluster, which is stored in `cluster` even if its nodes cannot be prepared.
    async fn open_and_prepare(
        &self,
        plan: &ClusterPlan,
        cluster: &mut Option<ClusterHandle>,
    ) -> Result<Vec<Arc<RunNode>>, PrepareError> {
        let step = |text: &str| self.report_cluster_step(&plan.name, text);
        let warning = |text: &str| {
            let (cluster, text) = (plan.name.clone(), text.to_owned());
            self.events.send(RunEventKind::ClusterWarning { cluster, text });
        };
        let progress = ClusterProgress { step: &step, warning: &warning };
        let cases = self.request.cases.iter();
        let own_disks = cases.filter_map(|case| case.case.pressure.as_ref()).any(Pressure::is_on_disk);
        let requirements = NodeRequirements { images: self.case_images(), own_disks };
        let opened = self.request.backend.open(plan, &requirements, &self.cancel, progress).await?;
        self.prepare_nodes(&plan.name, cluster.insert(opened)).await
    }

    fn report_cluster_step(&self, cluster: &str, text: &str) {
        self.events.send(RunEventKind::ClusterStep { cluster: cluster.to_owned(), text: text.to_owned() });
    }

    /// Configures every node and verifies that it runs pods.
    async fn prepare_nodes(
        &self,
        name: &str,
        cluster: &ClusterHandle,
    ) -> Result<Vec<Arc<RunNode>>, PrepareError> {
        let work = async {
            self.report_cluster_step(name, "preparing the nodes");
            let catalog = self.request.image_catalog.clone();
            let image_names: ImageNames = Arc::new(move |name: &str| catalog.case_image(name));
            let Some(first) = cluster.nodes().first() else { return Ok(Vec::new()) };
            let (client, run) = (first.client(), &self.request.run_id);
            let canaries = Arc::new(
                ProbePods::create(client, run, NamespacePurpose::Pods("canary"), first.guards()).await?,
            );
            let prepared = cluster.nodes().iter().map(async |node| {
                let prepared = RunNode::prepare(node.clone(), canaries.clone(), image_names.clone());
                (node, prepared.await)
            });
            let prepared = stream::iter(prepared).buffered(MAX_PREPARATIONS).collect().await;
            let nodes = self.prepared_nodes(name, prepared)?;
            if let Some(first) = nodes.first().filter(|_| self.request.backend.is_one_host()) {
                self.host.grow(&first.node).await;
            }
            Ok(nodes.into_iter().map(Arc::new).collect())
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(PrepareError::Interrupted),
            prepared = work => prepared,
        }
    }

    /// Returns the nodes that could be prepared. A node of an existing cluster that could not is
    /// not used, unless it was the last of its kubelet version.
    fn prepared_nodes(
        &self,
        cluster: &str,
        prepared: Vec<(&Node, Result<RunNode, RunNodeError>)>,
    ) -> Result<Vec<RunNode>, RunNodeError> {
        let (mut usable, mut failed) = (Vec::new(), Vec::new());
        for (node, result) in prepared {
            match result {
                Ok(run_node) => usable.push(run_node),
                Err(error) => failed.push((node, error)),
            }
        }
        for (node, error) in failed {
            let is_last = usable.iter().all(|run_node: &RunNode| run_node.node.kubelet != node.kubelet);
            if is_last || node.backend().external().is_none() {
                return Err(error);
            }
            self.report_cluster_step(cluster, &format!("{} is not used: {error}", node.name));
        }
        Ok(usable)
    }

    /// Returns the full names of all images of the cases and of the canary, sorted.
    fn case_images(&self) -> Vec<String> {
        let images = self.request.cases.iter().flat_map(|case| images_of(&case.case));
        let images = images.chain([CANARY_IMAGE.to_owned()]);
        let mut names: Vec<String> =
            images.map(|image| self.request.image_catalog.case_image(&image)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Deletes the cluster, or restores the nodes of an existing one. Without a cluster, removes
    /// the remains of a failed creation.
    pub(super) async fn tear_down(&self, plan: &ClusterPlan, cluster: Option<ClusterHandle>, usable: bool) {
        let began = Instant::now();
        self.recoveries.borrow_mut().abort_all();
        let teardown = TeardownContext {
            usable,
            needs_attention: self.failures.cluster_needs_attention(),
            interrupted: self.cancel.is_cancelled(),
        };
        let outcome = match cluster {
            Some(cluster) => cluster.end(teardown).await,
            None => self.request.backend.clear(plan, teardown).await,
        };
        let Some(TeardownOutcome { kept, error }) = outcome else { return };
        self.events.send(RunEventKind::ClusterDeleted {
            cluster: plan.name.clone(),
            seconds: began.elapsed().as_secs_f64(),
            kept: kept.map(str::to_owned),
            error: error.map(|error| error.to_string()),
        });
    }
}
