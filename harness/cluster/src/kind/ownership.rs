//! Proof that containers are the nodes of a cluster of evictlab: any program may create a kind
//! cluster with the name of one that is gone.

use super::kind_processes::KindProcesses;
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
        || !KindProcesses::of_record(record).list().is_empty()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::kind_processes::VARIABLE;
    use super::*;
    use crate::docker::{ContainerState, FakeDocker};
    use crate::owner::Owner;

    #[tokio::test]
    async fn a_cluster_that_another_run_is_creating_is_not_that_of_a_dead_run_of_its_name() {
        let cluster = format!("ownership-test-{}", std::process::id());
        let record = |run: &str| ClusterRecord::new("daemon", &cluster, run, Owner::current(), Vec::new());
        let (dead, creating) = (record("dead"), record("creating"));
        let processes = KindProcesses::of_record(&creating);
        let kind = Command::new("sleep").arg("60").env(VARIABLE, &processes.value).spawn();
        let mut kind = kind.unwrap();
        while processes.list().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let docker = FakeDocker::start(ContainerState::default()).docker();
        let node = Container {
            id: "1".to_owned(),
            name: format!("{cluster}-control-plane"),
            labels: Default::default(),
            running: true,
            paused: false,
            created: None,
        };
        let is_own = [
            is_own(&docker, &creating, std::slice::from_ref(&node)).await,
            is_own(&docker, &dead, std::slice::from_ref(&node)).await,
        ];
        kind.kill().unwrap();
        kind.wait().unwrap();
        assert_eq!(is_own, [true, false]);
    }
}
