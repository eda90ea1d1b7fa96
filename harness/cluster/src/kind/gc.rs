//! Garbage collection: finds and removes clusters and containers of dead processes. Clusters in use
//! and clusters that evictlab did not create are not touched.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cluster::Cluster;
use super::delete::{KIND_LABEL, delete};
use super::record::{ClusterRecord, ClusterState, NODE_FILE};
use super::state_dir::StateDir;
use crate::docker::{Container, Docker, DockerError, SCRATCH_LABEL, docker_host};
use crate::error::ClusterError;
use crate::owner::Owner;

/// A cluster that evictlab created.
#[derive(Clone, Debug, Serialize)]
pub struct KnownCluster {
    /// Record of the cluster.
    #[serde(flatten)]
    pub record: ClusterRecord,
    /// State of the cluster.
    #[serde(rename = "standing")]
    pub state: ClusterState,
    /// Names of its containers; empty for a record without a cluster.
    pub containers: Vec<String>,
    /// True if the cluster belongs to this Docker daemon.
    #[serde(rename = "here")]
    pub is_local: bool,
}

/// Lists all clusters with a record in the state directory or in a node of this Docker host. Other
/// kind clusters were not created by evictlab.
pub async fn find(docker: &Docker, state: &StateDir) -> Result<Vec<KnownCluster>, DockerError> {
    let mut by_cluster: BTreeMap<String, Vec<Container>> = BTreeMap::new();
    for container in docker.containers(KIND_LABEL).await? {
        if let Some(cluster) = container.labels.get(KIND_LABEL) {
            by_cluster.entry(cluster.clone()).or_default().push(container);
        }
    }
    let mut records: BTreeMap<String, ClusterRecord> =
        state.list().into_iter().map(|record| (record.cluster.clone(), record)).collect();
    for (cluster, containers) in &by_cluster {
        if records.contains_key(cluster) {
            continue;
        }
        for container in containers {
            // Reading fails while the container is being removed by its owner.
            let stored = docker.read_file(&container.id, NODE_FILE).await.ok().flatten();
            if let Some(record) =
                stored.and_then(|bytes| serde_json::from_slice::<ClusterRecord>(&bytes).ok())
            {
                records.insert(cluster.clone(), record);
                break;
            }
        }
    }
    let host = docker_host();
    Ok(records
        .into_values()
        .map(|record| KnownCluster {
            state: record.state(),
            containers: by_cluster
                .get(&record.cluster)
                .map(|containers| containers.iter().map(|container| container.name.clone()).collect())
                .unwrap_or_default(),
            is_local: record.docker_host == host,
            record,
        })
        .collect())
}

/// Result of [`collect`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// The cluster was deleted.
    Removed,
    /// The cluster is kept; the leftovers of a dead run were removed.
    Swept,
    /// The cluster was not changed, with the reason.
    Left(&'static str),
}

/// Deletes a cluster whose owner is dead, and cleans up a kept cluster. `kept` deletes kept
/// clusters, too.
pub async fn collect(
    docker: &Docker,
    state: &StateDir,
    found: &KnownCluster,
    kept: bool,
) -> Result<Removal, ClusterError> {
    if !found.is_local {
        return Ok(Removal::Left("it is on another Docker host"));
    }
    match found.state {
        ClusterState::Live => Ok(Removal::Left("its owner is running")),
        ClusterState::Kept if !kept && state.read(&found.record.cluster).is_none() => {
            Ok(Removal::Left("it is kept, and its kubeconfig is in another state directory"))
        }
        ClusterState::Kept if !kept && !found.containers.is_empty() => {
            let mut cluster = Cluster::open(docker, state, &found.record.cluster, &[]).await?;
            cluster.take(Owner::this()).await?;
            cluster.keep().await?;
            Ok(Removal::Swept)
        }
        ClusterState::Kept | ClusterState::Dead => {
            delete(docker, state, &found.record.cluster).await?;
            Ok(Removal::Removed)
        }
    }
}

/// Removes the scratch containers of dead processes, such as those for reading files of an image;
/// returns their names.
pub async fn remove_scratch(docker: &Docker) -> Result<Vec<String>, DockerError> {
    let mut removed = Vec::new();
    for container in docker.containers(SCRATCH_LABEL).await? {
        let owner =
            container.labels.get(SCRATCH_LABEL).and_then(|owner| serde_json::from_str::<Owner>(owner).ok());
        if owner.is_some_and(|owner| !owner.alive()) {
            docker.remove(&container.id).await?;
            removed.push(container.name);
        }
    }
    Ok(removed)
}
