//! The kind backend: new clusters for a run, or a kept one.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, NewCluster};
use super::config::{KindConfig, label_value};
use super::containers::containers;
use super::delete::{claim, delete};
use super::new_cluster::ClusterCreator;
use super::record::ClusterRecord;
use super::skew::KubeletGroup;
use super::state_dir::StateDir;
use crate::docker::Docker;
use crate::error::ClusterError;
use crate::images;
use crate::node::Node;
use crate::owner::Owner;
use crate::plan::{ClusterPlan, ClusterProgress, NodeRequirements, TeardownContext, TeardownOutcome};

/// Number of attempts to create a cluster on a host that is too slow for the timeouts of kind.
const CREATE_ATTEMPTS: u32 = 3;

/// Maximum time of waiting for another process that uses a kept cluster: `gc` and `cluster start`
/// take seconds, a run takes minutes.
const BRIEF_USE: Duration = Duration::from_secs(30);

/// Reason that a reused cluster is kept.
const REUSED: &str = "it existed before";

/// Source of the nodes of a run.
#[derive(Clone, Debug)]
pub enum ClusterSource {
    /// New clusters.
    New {
        /// Name of the cluster; prefix of the names if the version skew needs several clusters.
        name: String,
        /// Base of the kind configuration.
        base: KindConfig,
        /// Number of workers per kubelet.
        nodes: usize,
    },
    /// The kept cluster with this name.
    Kept(String),
}

/// Condition for keeping a new cluster after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepPolicy {
    /// Never.
    Never,
    /// If a verdict on the cluster is `failed`, `inconclusive` or `error`.
    OnFailure,
    /// Always.
    Always,
    /// Always: the next run of the same command reuses it.
    ForNextRun,
}

/// Options of the kind backend.
#[derive(Clone, Debug)]
pub struct KindOptions {
    /// Id of the run.
    pub run: String,
    /// Groups of kubelets; each group shares a cluster.
    pub groups: Vec<KubeletGroup>,
    /// Source of the nodes.
    pub clusters: ClusterSource,
    /// Condition for keeping new clusters.
    pub keep: KeepPolicy,
    /// Owner of the clusters: this process, or one that outlives it.
    pub owner: Owner,
}

/// Backend with real kubelets in Docker containers.
pub struct KindBackend {
    pub(crate) plans: Vec<ClusterPlan>,
    context: Rc<KindContext>,
}

/// Options, Docker host and state directory of the backend and its handles.
struct KindContext {
    options: KindOptions,
    docker: Docker,
    state: StateDir,
}

/// Fails if a cluster with the name of a new cluster exists. Nothing is created.
pub async fn ensure_names_unused(
    docker: &Docker,
    clusters: &ClusterSource,
    groups: usize,
) -> Result<(), ClusterError> {
    let ClusterSource::New { .. } = clusters else { return Ok(()) };
    for group in 0..groups {
        let name = cluster_name(clusters, group, groups);
        if !containers(docker, &name).await?.is_empty() {
            return Err(ClusterError::Exists(name));
        }
    }
    Ok(())
}

/// Name of the cluster of a group of kubelets.
fn cluster_name(clusters: &ClusterSource, group: usize, groups: usize) -> String {
    match clusters {
        ClusterSource::Kept(name) => name.clone(),
        ClusterSource::New { name, .. } if groups == 1 => name.clone(),
        ClusterSource::New { name, .. } => format!("{name}-{}", group + 1),
    }
}

impl KindBackend {
    /// Creates the backend. Clusters are created when they are opened.
    pub fn new(options: KindOptions, docker: Docker, state: StateDir) -> Self {
        let reused = matches!(options.clusters, ClusterSource::Kept(_));
        let groups = options.groups.len();
        let plan = |(index, group): (usize, &KubeletGroup)| ClusterPlan {
            name: cluster_name(&options.clusters, index, groups),
            kubelets: group.kubelets.clone(),
            reused,
        };
        let plans = options.groups.iter().enumerate().map(plan).collect();
        Self { plans, context: Rc::new(KindContext { options, docker, state }) }
    }

    /// Creates the cluster, or opens the kept one, and loads images into its nodes.
    pub(crate) async fn open(
        &self,
        plan: &ClusterPlan,
        requirements: &NodeRequirements,
        cancel: &CancellationToken,
        progress: ClusterProgress<'_>,
    ) -> Result<KindHandle, ClusterError> {
        let cluster = match &self.context.options.clusters {
            ClusterSource::Kept(_) => {
                self.context.open_kept(plan, &requirements.images, cancel, progress).await?
            }
            ClusterSource::New { base, nodes, .. } => {
                let new = self.context.claim(plan, base, *nodes).await?;
                self.context.create(new, requirements, cancel, progress).await?
            }
        };
        let nodes = cluster.nodes.iter().map(|node| with_requested_label(node, plan)).collect();
        Ok(KindHandle { cluster, nodes, context: self.context.clone() })
    }

    /// Removes the remains of a cluster that could not be opened.
    pub(crate) async fn clear(
        &self,
        plan: &ClusterPlan,
        teardown: TeardownContext,
    ) -> Option<TeardownOutcome> {
        let cluster = if plan.reused && teardown.usable {
            match self.context.open_cluster(plan, ClusterProgress::SILENT).await {
                Ok(cluster) => Some(cluster),
                Err(error) => {
                    return Some(TeardownOutcome { kept: Some(REUSED), error: Some(error) });
                }
            }
        } else {
            None
        };
        self.context.tear_down(&plan.name, cluster, teardown).await
    }
}

/// The worker with the label of the requested kubelet instead of the label value of the node.
fn with_requested_label(node: &Node, plan: &ClusterPlan) -> Node {
    let requested = plan.kubelets.iter().find(|kubelet| label_value(&kubelet.label) == node.kubelet);
    let kubelet = requested.map_or_else(|| node.kubelet.clone(), |requested| requested.label.clone());
    Node { kubelet, ..node.clone() }
}

impl KindContext {
    async fn open_cluster(
        &self,
        plan: &ClusterPlan,
        progress: ClusterProgress<'_>,
    ) -> Result<Cluster, ClusterError> {
        Cluster::open(&self.docker, &self.state, &plan.name, &plan.kubelets, progress.warning).await
    }

    /// Opens a kept cluster, installs kubelets and loads images.
    async fn open_kept(
        &self,
        plan: &ClusterPlan,
        images: &[String],
        cancel: &CancellationToken,
        progress: ClusterProgress<'_>,
    ) -> Result<Cluster, ClusterError> {
        let mut cluster = self.open_cluster(plan, progress).await?;
        self.take(&mut cluster, cancel, progress).await?;
        let preparation = async {
            let step = progress.step;
            cluster.install_kubelets(&plan.kubelets, step).await?;
            let nodes: Vec<&str> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
            Ok(images::ensure_loaded(&self.docker, &nodes, images, step).await?)
        };
        let prepared = cancel.run_until_cancelled(preparation).await;
        prepared.unwrap_or(Err(ClusterError::Interrupted)).map(|()| cluster)
    }

    /// Takes a kept cluster, and waits if another process uses it for a moment.
    async fn take(
        &self,
        cluster: &mut Cluster,
        cancel: &CancellationToken,
        progress: ClusterProgress<'_>,
    ) -> Result<(), ClusterError> {
        let began = Instant::now();
        let mut holder = None;
        loop {
            match cluster.take(self.options.owner.clone()).await {
                Err(ClusterError::InUse { pid, .. }) if began.elapsed() < BRIEF_USE => {
                    if holder.replace(pid) != Some(pid) {
                        (progress.step)(&format!("waiting for process {pid}, which uses the cluster"));
                    }
                    let pause = cancel.run_until_cancelled(sleep(Duration::from_millis(500)));
                    pause.await.ok_or(ClusterError::Interrupted)?;
                }
                taken => return taken,
            }
        }
    }

    /// Claims the name of a new cluster.
    async fn claim<'a>(
        &'a self,
        plan: &ClusterPlan,
        base: &'a KindConfig,
        nodes: usize,
    ) -> Result<NewCluster<'a>, ClusterError> {
        let Self { options, docker, state } = self;
        let group = options.groups.iter().find(|group| group.kubelets == plan.kubelets);
        let group = group.ok_or_else(|| ClusterError::Unknown(plan.name.clone()))?;
        let labels = plan.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
        let owner = options.owner.clone();
        let record = ClusterRecord::new(docker.id(), &plan.name, &options.run, owner, labels);
        claim(docker, state, &record).await?;
        Ok(NewCluster { record, group, base, nodes })
    }

    /// Creates a claimed cluster; retries if the host is too slow for kind.
    async fn create(
        &self,
        new: NewCluster<'_>,
        requirements: &NodeRequirements,
        cancel: &CancellationToken,
        progress: ClusterProgress<'_>,
    ) -> Result<Cluster, ClusterError> {
        let Self { docker, state, .. } = self;
        let creator = ClusterCreator { docker, state, requirements };
        for _ in 1..CREATE_ATTEMPTS {
            match creator.create(new.clone(), cancel, progress).await {
                Err(ClusterError::Exists(name)) => {
                    state.forget(&name)?;
                    return Err(ClusterError::Exists(name));
                }
                Err(error) if error.is_slow_host() => {
                    (progress.step)("the nodes did not start within kind's 30 s; trying again");
                    delete(docker, state, &new.record.cluster).await?;
                    state.write(&new.record)?;
                }
                created => return created,
            }
        }
        creator.create(new, cancel, progress).await
    }

    /// Deletes the cluster, or restores its nodes and keeps it.
    async fn tear_down(
        &self,
        name: &str,
        cluster: Option<Cluster>,
        teardown: TeardownContext,
    ) -> Option<TeardownOutcome> {
        let options = &self.options;
        let reused = matches!(options.clusters, ClusterSource::Kept(_));
        // Creation has not started, or another process has taken the name since.
        if !reused && self.state.read(name).is_none_or(|record| record.run != options.run) {
            return None;
        }
        // A reused cluster is restored in any case; an unusable new cluster is not kept.
        let cluster = cluster.filter(|_| reused || teardown.usable);
        let kept = match options.keep {
            _ if reused => Some(REUSED),
            KeepPolicy::Always => Some("--keep"),
            KeepPolicy::ForNextRun => Some("for the next run"),
            KeepPolicy::OnFailure if teardown.needs_attention => Some("--keep-on-failure"),
            _ => None,
        };
        // An interrupted run keeps no new cluster.
        let kept = kept.filter(|_| reused || cluster.is_some() && !teardown.interrupted);
        let error = match (kept, cluster) {
            (Some(_), Some(mut cluster)) => {
                let cleaned = cluster.clean_up(Some(&options.run)).await;
                // A reused cluster may belong to a test run that is still active.
                let saved = if reused { Ok(()) } else { cluster.keep().await };
                [cleaned.err(), saved.err()].into_iter().flatten().next()
            }
            // An unusable reused cluster is left to its owner.
            (Some(_), None) if reused => None,
            _ => delete(&self.docker, &self.state, name).await.err(),
        };
        Some(TeardownOutcome { kept, error })
    }
}

/// A kind cluster in use by a run.
pub struct KindHandle {
    cluster: Cluster,
    pub(crate) nodes: Vec<Node>,
    context: Rc<KindContext>,
}

impl KindHandle {
    /// Deletes the cluster, or restores its nodes and keeps it.
    pub(crate) async fn end(self, teardown: TeardownContext) -> Option<TeardownOutcome> {
        let Self { cluster, context, .. } = self;
        let name = cluster.name.clone();
        context.tear_down(&name, Some(cluster), teardown).await
    }
}
