//! Proof that containers are the nodes of a cluster of evictlab: any program may create a kind
//! cluster with the name of one that is gone.

use super::kind_processes;
use super::record::{ClusterRecord, NODE_FILE};
use crate::docker::{Container, Docker};

/// Returns whether all containers with the name of a cluster are those of its record, as far as can
/// be known. Without containers, they are.
pub(super) async fn is_own(docker: &Docker, record: &ClusterRecord, containers: &[Container]) -> bool {
    match stored_record(docker, &record.cluster, containers).await {
        Some(stored) => stored.run == record.run,
        None => containers.is_empty() || is_of_record(record, containers),
    }
}

/// Reads the record from the nodes of a cluster. A record with the name of another cluster is not
/// its own: the node image may have been made from a node of that cluster.
pub(super) async fn stored_record(
    docker: &Docker,
    cluster: &str,
    containers: &[Container],
) -> Option<ClusterRecord> {
    for container in containers {
        // Reading fails while the container is being removed by its owner.
        let stored = docker.read_file(&container.id, NODE_FILE).await.ok().flatten();
        let record = stored.and_then(|bytes| serde_json::from_slice::<ClusterRecord>(&bytes).ok());
        if let Some(record) = record.filter(|record| record.cluster == cluster) {
            return Some(record);
        }
    }
    None
}

/// Returns whether containers without a record are those of a run that is creating its cluster, or
/// ended meanwhile: kind still runs for it, the name is unique to the run, or the run saw one of
/// them. kind creates no cluster with the name of an existing container.
pub(super) fn is_of_record(record: &ClusterRecord, containers: &[Container]) -> bool {
    record.cluster.contains(&record.run)
        || containers.iter().any(|container| record.node_ids.contains(&container.id))
        || !kind_processes::list(&record.cluster).is_empty()
}
