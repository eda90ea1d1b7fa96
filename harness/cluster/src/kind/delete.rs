//! Claims the name of a new cluster, and deletes a cluster.

use std::time::Duration;

use super::command;
use super::containers::containers;
use super::heartbeat::ExaminedOwner;
use super::kind_processes::KindProcesses;
use super::ownership::is_own;
use super::record::{ClusterRecord, ClusterState};
use super::state_dir::StateDir;
use crate::docker::Docker;
use crate::error::ClusterError;
use crate::wait::{self, Poll};

/// Maximum time without any change of the containers while a cluster is being deleted.
const DELETION_TIMEOUT: Duration = Duration::from_secs(300);

/// Number of consecutive checks without containers and kind processes that end a deletion.
const IDLE_CHECKS: u32 = 2;

/// Writes the record of a new cluster before the cluster is created. The remains of a dead run with
/// this name are deleted first.
///
/// # Errors
/// A cluster with this name exists.
pub async fn claim(docker: &Docker, state: &StateDir, record: &ClusterRecord) -> Result<(), ClusterError> {
    let name = &record.cluster;
    if let Some(earlier) = state.read(name) {
        let nodes = containers(docker, name).await?;
        let examined = ExaminedOwner::of(docker, &earlier, &nodes).await;
        let remains = state.change_owner(name, &record.owner, |earlier| match examined.state(earlier) {
            ClusterState::Dead => Ok(()),
            _ => Err(ClusterError::Exists(name.clone())),
        })?;
        if let Some(remains) = remains {
            if !is_own(docker, &remains, &containers(docker, name).await?).await {
                return Err(ClusterError::Exists(name.clone()));
            }
            delete_of_run(docker, state, name, &remains.run).await?;
        }
    }
    if state.claim(record)? { Ok(()) } else { Err(ClusterError::Exists(name.clone())) }
}

/// Deletes a cluster with its state files, even while a killed run is still creating it: kind is
/// stopped, and the containers of its `docker` commands are removed until the last one has exited.
/// Other runs may be creating a cluster of this name on another daemon: their kind is not stopped.
pub async fn delete(docker: &Docker, state: &StateDir, name: &str) -> Result<(), ClusterError> {
    let run = state.read(name).map(|record| record.run).unwrap_or_default();
    delete_of_run(docker, state, name, &run).await
}

/// Deletes a cluster of a run, as [`delete`].
pub(super) async fn delete_of_run(
    docker: &Docker,
    state: &StateDir,
    name: &str,
    run: &str,
) -> Result<(), ClusterError> {
    let kind = KindProcesses::of(name, run, docker.id());
    kind.stop().await;
    let deleted_by_kind = command::delete(name, &state.kubeconfig(name), &kind).await;
    let (mut idle, mut docker_error) = (0, None);
    let deleted = wait::until(DELETION_TIMEOUT, Duration::from_millis(250), async || {
        let remaining = match containers(docker, name).await {
            Ok(remaining) => remaining,
            Err(error) => {
                docker_error = Some(error);
                return Poll::Pending("Docker does not answer".to_owned());
            }
        };
        let processes = kind.list();
        idle = if remaining.is_empty() && processes.is_empty() { idle + 1 } else { 0 };
        if idle == IDLE_CHECKS {
            return Poll::Done(());
        }
        for container in &remaining {
            // The container may be busy. The next check retries.
            docker_error = docker.remove(&container.id).await.err().or(docker_error.take());
        }
        let names = remaining.into_iter().map(|container| container.name);
        let processes = processes.into_iter().map(|pid| format!("process {pid} of kind"));
        Poll::Pending(names.chain(processes).collect::<Vec<_>>().join(", "))
    })
    .await;
    match (deleted, docker_error, deleted_by_kind) {
        (Ok(()), ..) => Ok(state.forget(name)?),
        (Err(_), Some(error), _) => Err(error.into()),
        (Err(_), None, Err(error)) => Err(error.into()),
        (Err(stalled), None, Ok(())) => {
            Err(ClusterError::ContainersRemain { cluster: name.to_owned(), containers: stalled.last })
        }
    }
}
