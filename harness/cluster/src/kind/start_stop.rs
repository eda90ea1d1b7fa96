//! Stops the nodes of a kept cluster, and starts them again.

use std::time::Duration;

use futures::future::try_join_all;

use super::cluster::{Cluster, client, resume_nodes, wait_for_nodes};
use super::containers::{containers, is_control_plane};
use super::heartbeat::ExaminedOwner;
use super::record::ClusterState;
use super::start_watch::StartWatch;
use super::state_dir::StateDir;
use crate::docker::Docker;
use crate::error::ClusterError;
use crate::owner::Owner;
use crate::plan::ClusterProgress;

/// Time that the processes of a node get to end: as `docker stop` by default. Those of pods may
/// ignore the signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Stops the nodes of a kept cluster. Their objects and kubeconfig remain.
///
/// # Errors
/// A process uses the cluster, or Docker fails.
pub async fn stop(docker: &Docker, state: &StateDir, name: &str) -> Result<(), ClusterError> {
    let nodes = containers(docker, name).await?;
    if let Some(record) = state.read(name) {
        let examined = ExaminedOwner::of(docker, &record, &nodes).await;
        // A run that opens the cluster now is refused.
        state.change_owner(name, &Owner::current(), |record| match examined.state(record) {
            ClusterState::Live => {
                Err(ClusterError::InUse { cluster: name.to_owned(), pid: record.owner.pid })
            }
            _ => Ok(()),
        })?;
    }
    let running = nodes.iter().filter(|node| node.running);
    try_join_all(running.map(|node| docker.stop(&node.id, STOP_TIMEOUT))).await?;
    Ok(())
}

/// Starts the nodes of a kept cluster that do not run; returns when all are ready. Restores what
/// earlier runs left, and gives the workers file systems of their own, as a new cluster has them:
/// those of before have lost their mounts. A start that was interrupted is completed.
///
/// # Errors
/// Docker fails, another process takes the cluster, or nodes do not become ready.
pub async fn start(
    docker: &Docker,
    state: &StateDir,
    name: &str,
    progress: ClusterProgress<'_>,
) -> Result<(), ClusterError> {
    let nodes = containers(docker, name).await?;
    if let Some(record) = state.read(name) {
        resume_nodes(docker, &record, &nodes).await?;
    }
    let count = nodes.len();
    let stopped = nodes.into_iter().filter(|node| !node.running);
    let (control_planes, workers): (Vec<_>, Vec<_>) = stopped.partition(is_control_plane);
    if !(control_planes.is_empty() && workers.is_empty()) {
        (progress.step)("starting the nodes");
    }
    for nodes in [control_planes, workers] {
        try_join_all(nodes.iter().map(|node| docker.start(&node.id))).await?;
    }
    (progress.step)("waiting for the nodes");
    let client = client(state, name).await?;
    wait_for_nodes(&client, &mut StartWatch::new(docker, name), count, progress.warning).await?;
    let mut cluster = Cluster::open(docker, state, name, &[], progress.warning).await?;
    cluster.take(Owner::current()).await?;
    cluster.separate_disks(progress.step).await?;
    cluster.keep().await
}
