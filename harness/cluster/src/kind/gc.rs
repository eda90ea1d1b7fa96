//! Garbage collection: finds and removes clusters and containers of dead processes. Clusters in use
//! and clusters that evictlab did not create are not touched.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::cluster::Cluster;
use super::containers::{KIND_LABEL, are_stopped, containers};
use super::delete::delete_of_run;
use super::heartbeat::ExaminedOwner;
use super::name::ClusterName;
use super::ownership::{is_of_record, is_own, stored_record};
use super::record::{ClusterRecord, ClusterState, LastHeartbeat};
use super::state_dir::StateDir;
use crate::docker::{Container, Docker, DockerError, SCRATCH_LABEL};
use crate::error::ClusterError;
use crate::owner::{ABANDONED_AFTER, Owner};

/// A cluster that evictlab created.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KnownCluster {
    /// Record of the cluster.
    #[serde(flatten)]
    pub record: ClusterRecord,
    /// State of the cluster.
    pub state: ClusterState,
    /// Names of its containers; empty for a record without a cluster.
    pub containers: Vec<String>,
    /// True if the cluster belongs to this Docker daemon.
    #[serde(rename = "local")]
    pub is_local: bool,
    /// False if the containers may belong to another cluster with the name of a dead one.
    #[serde(rename = "own")]
    pub is_own: bool,
}

/// Lists all clusters with a record in the state directory or in a node of this Docker host. Other
/// kind clusters were not created by evictlab.
pub async fn find(docker: &Docker, state: &StateDir) -> Result<Vec<KnownCluster>, DockerError> {
    let mut by_cluster: BTreeMap<String, Vec<Container>> = BTreeMap::new();
    for container in docker.containers(KIND_LABEL).await? {
        // Files are named after the cluster.
        let cluster = container.labels.get(KIND_LABEL);
        if let Some(cluster) = cluster.filter(|name| name.parse::<ClusterName>().is_ok()) {
            by_cluster.entry(cluster.clone()).or_default().push(container);
        }
    }
    let mut records: BTreeMap<String, ClusterRecord> =
        state.list().into_iter().map(|record| (record.cluster.clone(), record)).collect();
    let mut found = Vec::new();
    for (cluster, containers) in &by_cluster {
        let stored = stored_record(docker, cluster, containers).await;
        let known = records.remove(cluster);
        // The record in the nodes is that of the run that created them.
        let is_own =
            stored.is_some() || known.as_ref().is_some_and(|record| is_of_record(record, containers));
        if let Some(record) = stored.or(known) {
            let state = match ExaminedOwner::of(docker, &record, containers).await.state(&record) {
                ClusterState::Kept if are_stopped(containers) => ClusterState::Stopped,
                state => state,
            };
            found.push(KnownCluster {
                state,
                containers: containers.iter().map(|container| container.name.clone()).collect(),
                is_local: true,
                is_own,
                record,
            });
        }
    }
    // Records without containers.
    found.extend(records.into_values().map(|record| KnownCluster {
        state: record.state(LastHeartbeat::None),
        containers: Vec::new(),
        is_local: record.is_on(docker.id()),
        is_own: true,
        record,
    }));
    found.sort_by(|a, b| a.record.cluster.cmp(&b.record.cluster));
    Ok(found)
}

/// Result of [`collect`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// The cluster was deleted.
    Removed,
    /// The cluster is kept; the leftovers of a dead run were removed.
    CleanedUp,
    /// The cluster was not changed, with the reason.
    Kept(&'static str),
}

/// A cluster that another process uses.
const IN_USE: Removal = Removal::Kept("its owner is running");

/// Returns what [`collect`] does with a cluster, unless another process changes the cluster before.
pub fn planned_removal(state: &StateDir, found: &KnownCluster, kept: bool) -> Removal {
    if !found.is_local {
        return Removal::Kept("it is on another Docker host");
    }
    if !found.is_own {
        return Removal::Kept(
            "its nodes have no record of a run: another program may have created it; `evictlab cluster delete --force` deletes it",
        );
    }
    match found.state {
        ClusterState::Live => IN_USE,
        ClusterState::Stopped if !kept => {
            Removal::Kept("its nodes do not run; `evictlab cluster start` starts and cleans them")
        }
        ClusterState::Kept if !kept && state.read(&found.record.cluster).is_none() => {
            Removal::Kept("it is kept, and its kubeconfig is in another state directory")
        }
        ClusterState::Kept if !kept && !found.containers.is_empty() => Removal::CleanedUp,
        ClusterState::Kept | ClusterState::Stopped | ClusterState::Dead => Removal::Removed,
    }
}

/// Deletes a cluster whose owner is dead, and cleans up a kept cluster. `kept` deletes kept
/// clusters, too.
pub async fn collect(
    docker: &Docker,
    state: &StateDir,
    found: &KnownCluster,
    kept: bool,
) -> Result<Removal, ClusterError> {
    let collected = match planned_removal(state, found, kept) {
        kept @ Removal::Kept(_) => return Ok(kept),
        Removal::CleanedUp => clean_up_kept(docker, state, &found.record.cluster).await,
        Removal::Removed => remove(docker, state, &found.record).await,
    };
    match collected {
        // Another process has taken it since it was found.
        Err(ClusterError::InUse { .. }) => Ok(IN_USE),
        collected => collected,
    }
}

/// Cleans up a kept cluster.
async fn clean_up_kept(docker: &Docker, state: &StateDir, cluster: &str) -> Result<Removal, ClusterError> {
    let mut cluster = Cluster::open(docker, state, cluster, &[], &|_| {}).await?;
    cluster.take(Owner::current()).await?;
    cluster.keep().await?;
    Ok(Removal::CleanedUp)
}

/// Deletes a cluster, unless it has another owner, or other nodes, than when it was found.
async fn remove(docker: &Docker, state: &StateDir, found: &ClusterRecord) -> Result<Removal, ClusterError> {
    state.change_owner(&found.cluster, &Owner::current(), |record| {
        // The heartbeat of a new owner is not known.
        if record.owner != found.owner && record.state(LastHeartbeat::Unreadable) == ClusterState::Live {
            Err(ClusterError::InUse { cluster: record.cluster.clone(), pid: record.owner.pid })
        } else {
            Ok(())
        }
    })?;
    if !is_own(docker, found, &containers(docker, &found.cluster).await?).await {
        return Ok(Removal::Kept("another program has created its nodes again"));
    }
    delete_of_run(docker, state, &found.cluster, &found.run).await?;
    Ok(Removal::Removed)
}

fn is_outdated(container: &Container) -> bool {
    let age = container.created.map(|created| Timestamp::now().as_second().saturating_sub(created));
    age.and_then(|age| u64::try_from(age).ok()).is_some_and(|age| age > ABANDONED_AFTER.as_secs())
}

/// Lists the scratch containers of dead processes, such as those for reading files of an image.
pub async fn dead_scratch_containers(docker: &Docker) -> Result<Vec<Container>, DockerError> {
    let mut containers = docker.containers(SCRATCH_LABEL).await?;
    containers.retain(|container| {
        let owner = container.labels.get(SCRATCH_LABEL);
        let owner = owner.and_then(|owner| serde_json::from_str::<Owner>(owner).ok());
        // A process elsewhere cannot be checked, but no scratch container is used for hours.
        owner.is_some_and(|owner| !owner.is_alive() || !owner.is_local() && is_outdated(container))
    });
    Ok(containers)
}
