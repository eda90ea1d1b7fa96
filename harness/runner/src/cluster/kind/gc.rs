//! Finding and removing what dead runs left: never what a live one uses, never a stranger's.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cluster::KIND_LABEL;
use super::docker::SCRATCH_LABEL;
use super::record::NODE_FILE;
use super::{Cluster, Docker, DockerError, Owner, Record, Standing, StateDir};
use crate::cluster::ClusterError;

/// A cluster that evictlab made.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// What is written down about it.
    #[serde(flatten)]
    pub record: Record,
    /// What may be done with it.
    pub standing: Standing,
    /// Its containers that are there; none for a record without a cluster.
    pub containers: Vec<String>,
    /// Whether this Docker daemon is the one that it was made on.
    pub here: bool,
}

/// Every cluster that evictlab made and this machine knows of: by its state files, and by the records in the nodes of this Docker host. A kind
/// cluster with neither is a stranger's.
pub async fn find(docker: &Docker, state: &StateDir) -> Result<Vec<Found>, DockerError> {
    let mut by_cluster: BTreeMap<String, Vec<super::Container>> = BTreeMap::new();
    for container in docker.containers(KIND_LABEL).await? {
        if let Some(cluster) = container.labels.get(KIND_LABEL) {
            by_cluster.entry(cluster.clone()).or_default().push(container);
        }
    }
    let mut records: BTreeMap<String, Record> =
        state.list().into_iter().map(|record| (record.cluster.clone(), record)).collect();
    for (cluster, containers) in &by_cluster {
        if records.contains_key(cluster) {
            continue;
        }
        for container in containers {
            // One that is just being removed cannot be read, and is somebody's who lives.
            let signed = docker.read_file(&container.id, NODE_FILE).await.ok().flatten();
            if let Some(record) = signed.and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok()) {
                records.insert(cluster.clone(), record);
                break;
            }
        }
    }
    let host = super::docker::host();
    Ok(records
        .into_values()
        .map(|record| Found {
            standing: record.standing(),
            containers: by_cluster
                .get(&record.cluster)
                .map(|containers| containers.iter().map(|container| container.name.clone()).collect())
                .unwrap_or_default(),
            here: record.docker_host == host,
            record,
        })
        .collect())
}

/// What was done with a cluster, or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// It is gone.
    Removed,
    /// It was kept on purpose, and what a dead run had left in it is gone.
    Swept,
    /// It was left alone, and why.
    Left(&'static str),
}

/// Removes a cluster whose owner is gone, and puts a kept one back in order. `kept` removes kept ones, too.
pub async fn collect(
    docker: &Docker,
    state: &StateDir,
    found: &Found,
    kept: bool,
) -> Result<Removal, ClusterError> {
    if !found.here {
        return Ok(Removal::Left("it is on another Docker host"));
    }
    match found.standing {
        Standing::Live => Ok(Removal::Left("its owner runs")),
        Standing::Kept if !kept && state.read(&found.record.cluster).is_none() => {
            Ok(Removal::Left("it is kept, and another state folder has its kubeconfig"))
        }
        Standing::Kept if !kept && !found.containers.is_empty() => {
            let mut cluster = Cluster::open(docker, state, &found.record.cluster, &[]).await?;
            cluster.take(Owner::this()).await?;
            cluster.keep().await?;
            Ok(Removal::Swept)
        }
        Standing::Kept | Standing::Dead => {
            super::delete(docker, state, &found.record.cluster).await?;
            Ok(Removal::Removed)
        }
    }
}

/// Removes the containers that dead processes had made for a moment, such as for a look into an image; returns their names.
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
