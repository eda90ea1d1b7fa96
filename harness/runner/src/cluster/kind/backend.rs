//! kind clusters for a run: new ones, or one that was kept.

use std::rc::Rc;
use std::time::Duration;

use evictlab_embedded::fault::Fault;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use tokio_util::sync::CancellationToken;

use super::make::make;
use super::{Base, Cluster, Docker, Group, Owner, Record, StateDir, claim, containers, delete, label_value};
use crate::cluster::{Backend, ClusterError, Ended, Ending, Node, Opened, Plan};
use crate::images;
use crate::report::Model;

/// How long a cluster may be there before another host may take it for left behind.
pub const DEADLINE: Duration = Duration::from_secs(12 * 3600);

/// How often a cluster is tried whose host is too slow for kind.
const ATTEMPTS: u32 = 3;

/// Where the nodes come from.
#[derive(Clone, Debug)]
pub enum Clusters {
    /// New clusters.
    New {
        /// The name, or the beginning of the names where the skew asks for several.
        name: String,
        /// The kind configuration.
        base: Base,
        /// Workers for each kubelet.
        nodes: usize,
    },
    /// The cluster of this name, which was kept.
    Kept(String),
}

/// When a new cluster outlives the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Never.
    Never,
    /// When a verdict is `failed`, `inconclusive` or `error`.
    OnFailure,
    /// Always.
    Always,
}

/// What kind clusters are made of, and what becomes of them.
#[derive(Clone, Debug)]
pub struct Made {
    /// The run's id.
    pub run: String,
    /// Groups of kubelets that share a cluster.
    pub groups: Vec<Group>,
    /// Where the nodes come from.
    pub clusters: Clusters,
    /// When they stay.
    pub keep: Keep,
    /// Who answers for the clusters: this process, or one that outlives it.
    pub owner: Owner,
}

/// Real kubelets in Docker containers.
pub struct KindBackend {
    plans: Vec<Plan>,
    means: Rc<Means>,
}

struct Means {
    made: Made,
    docker: Docker,
    state: StateDir,
}

/// Refuses names of new clusters that are taken, before anything is made.
pub async fn free(docker: &Docker, clusters: &Clusters, groups: usize) -> Result<(), ClusterError> {
    let Clusters::New { .. } = clusters else { return Ok(()) };
    for group in 0..groups {
        let name = name_of(clusters, group, groups);
        if !containers(docker, &name).await?.is_empty() {
            return Err(ClusterError::Exists(name));
        }
    }
    Ok(())
}

/// The name of the cluster for a group of kubelets.
fn name_of(clusters: &Clusters, group: usize, groups: usize) -> String {
    match clusters {
        Clusters::Kept(name) => name.clone(),
        Clusters::New { name, .. } if groups == 1 => name.clone(),
        Clusters::New { name, .. } => format!("{name}-{}", group + 1),
    }
}

impl KindBackend {
    /// Clusters as stated. Nothing is made before they are opened.
    pub fn new(made: Made, docker: Docker, state: StateDir) -> Self {
        let reused = matches!(made.clusters, Clusters::Kept(_));
        let count = made.groups.len();
        let plan = |(place, group): (usize, &Group)| Plan {
            name: name_of(&made.clusters, place, count),
            kubelets: group.kubelets.clone(),
            reused,
        };
        let plans = made.groups.iter().enumerate().map(plan).collect();
        Self { plans, means: Rc::new(Means { made, docker, state }) }
    }
}

impl Backend for KindBackend {
    fn name(&self) -> &'static str {
        "kind"
    }

    fn plans(&self) -> &[Plan] {
        &self.plans
    }

    fn model(&self) -> Option<Model> {
        None
    }

    fn faults(&self) -> Option<&[Fault]> {
        None
    }

    fn is_one_host(&self) -> bool {
        true
    }

    fn open<'a>(
        &'a self,
        plan: &'a Plan,
        images: &'a [String],
        cancel: &'a CancellationToken,
        step: &'a dyn Fn(&str),
    ) -> LocalBoxFuture<'a, Result<Box<dyn Opened>, ClusterError>> {
        async move {
            let cluster = self.means.open(plan, images, cancel, step).await?;
            let nodes = cluster.nodes.iter().map(|node| named(node, plan)).collect();
            Ok(Box::new(InUse { cluster, nodes, means: self.means.clone() }) as Box<dyn Opened>)
        }
        .boxed_local()
    }

    fn clear<'a>(&'a self, plan: &'a Plan, ending: Ending) -> LocalBoxFuture<'a, Option<Ended>> {
        async move {
            // One of before is put in order even so, if it can be.
            let cluster = match plan.reused && ending.usable {
                true => match self.means.taken(plan).await {
                    Ok(cluster) => Some(cluster),
                    Err(error) => {
                        return Some(Ended { kept: Some(BEFORE), error: Some(error) });
                    }
                },
                false => None,
            };
            self.means.end(&plan.name, cluster, ending).await
        }
        .boxed_local()
    }
}

/// Why a cluster of before stays.
const BEFORE: &str = "it was there before";

/// The worker, named by its kubelet as it was asked for.
fn named(node: &Node, plan: &Plan) -> Node {
    let asked = plan.kubelets.iter().find(|kubelet| label_value(&kubelet.label) == node.kubelet);
    let kubelet = asked.map_or_else(|| node.kubelet.clone(), |asked| asked.label.clone());
    Node { kubelet, ..node.clone() }
}

impl Means {
    async fn taken(&self, plan: &Plan) -> Result<Cluster, ClusterError> {
        Cluster::open(&self.docker, &self.state, &plan.name, &plan.kubelets).await
    }

    async fn open(
        &self,
        plan: &Plan,
        images: &[String],
        cancel: &CancellationToken,
        step: &dyn Fn(&str),
    ) -> Result<Cluster, ClusterError> {
        let Self { made, docker, state } = self;
        let name = &plan.name;
        let Clusters::New { base, nodes, .. } = &made.clusters else {
            let mut cluster = self.taken(plan).await?;
            cluster.take(made.owner.clone()).await?;
            let furnishing = async {
                cluster.put_in(&plan.kubelets, step).await?;
                let nodes: Vec<&str> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
                Ok(images::bring(docker, &nodes, images, step).await?)
            };
            let furnished = cancel.run_until_cancelled(furnishing).await;
            return furnished.unwrap_or(Err(ClusterError::Interrupted)).map(|()| cluster);
        };
        let group = made.groups.iter().find(|group| group.kubelets == plan.kubelets);
        let group = group.ok_or_else(|| ClusterError::Unknown(name.clone()))?;
        let labels = plan.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
        let record = Record::new(name, &made.run, made.owner.clone(), labels, DEADLINE);
        claim(docker, state, &record).await?;
        for _ in 1..ATTEMPTS {
            let plan = (group, base, *nodes);
            match make(docker, state, record.clone(), plan, images, cancel, step).await {
                Err(ClusterError::Exists(name)) => {
                    state.forget(&name)?;
                    return Err(ClusterError::Exists(name));
                }
                Err(ClusterError::Kind(error)) if error.too_slow() => {
                    step("the nodes did not start within kind's 30 s; trying again");
                    delete(docker, state, name).await?;
                    state.write(&record)?;
                }
                made => return made,
            }
        }
        make(docker, state, record, (group, base, *nodes), images, cancel, step).await
    }

    /// Deletes the cluster, or puts its nodes back and leaves it.
    async fn end(&self, name: &str, cluster: Option<Cluster>, ending: Ending) -> Option<Ended> {
        let made = &self.made;
        let reused = matches!(made.clusters, Clusters::Kept(_));
        // Another has taken the name in the meantime, or nothing was begun.
        if !reused && self.state.read(name).is_none_or(|record| record.run != made.run) {
            return None;
        }
        // One of before is put in order all the same; a new one without use is not kept.
        let cluster = cluster.filter(|_| reused || ending.usable);
        let kept = match made.keep {
            _ if reused => Some(BEFORE),
            Keep::Always => Some("--keep"),
            Keep::OnFailure if ending.failed => Some("--keep-on-failure"),
            _ => None,
        };
        // An interrupted run leaves nothing of its own.
        let kept = kept.filter(|_| reused || cluster.is_some() && !ending.interrupted);
        let error = match (kept, cluster) {
            (Some(_), Some(mut cluster)) => {
                let back = cluster.sweep(Some(&made.run)).await;
                // One that was lent for a test run stays the test run's.
                let signed = if reused { Ok(()) } else { cluster.keep().await };
                [back.err(), signed.err()].into_iter().flatten().next()
            }
            // What cannot be used any more but was there before is its owner's to judge.
            (Some(_), None) if reused => None,
            _ => delete(&self.docker, &self.state, name).await.err(),
        };
        Some(Ended { kept, error })
    }
}

/// A kind cluster that a run uses.
struct InUse {
    cluster: Cluster,
    nodes: Vec<Node>,
    means: Rc<Means>,
}

impl Opened for InUse {
    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn end(self: Box<Self>, ending: Ending) -> LocalBoxFuture<'static, Option<Ended>> {
        async move {
            let Self { cluster, means, .. } = *self;
            let name = cluster.name.clone();
            means.end(&name, Some(cluster), ending).await
        }
        .boxed_local()
    }
}
