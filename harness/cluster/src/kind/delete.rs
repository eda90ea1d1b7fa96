//! Containers, name claims and deletion of a cluster.

use std::time::Duration;

use super::record::{ClusterRecord, ClusterState};
use super::state_dir::StateDir;
use super::{command, kind_processes};
use crate::docker::{Container, Docker, DockerError};
use crate::error::ClusterError;
use crate::wait::{self, Probe};

/// Label that kind puts on node containers; its value is the name of the cluster.
pub const KIND_LABEL: &str = "io.x-k8s.kind.cluster";

/// Maximum time without any change of the containers while a cluster is being deleted.
const DELETION_TIMEOUT: Duration = Duration::from_secs(300);

/// Number of consecutive checks without containers and kind processes that end a deletion.
const IDLE_CHECKS: u32 = 2;

/// Containers of a cluster.
pub async fn containers(docker: &Docker, name: &str) -> Result<Vec<Container>, DockerError> {
    docker.containers(&format!("{KIND_LABEL}={name}")).await
}

/// Writes the record of a new cluster before the cluster is created. The remains of a dead run with
/// this name are deleted first.
///
/// # Errors
/// A cluster with this name exists.
pub async fn claim(docker: &Docker, state: &StateDir, record: &ClusterRecord) -> Result<(), ClusterError> {
    let name = &record.cluster;
    if state.read(name).is_some_and(|earlier| earlier.state(None) == ClusterState::Dead) {
        delete(docker, state, name).await?;
    }
    match state.claim(record)? {
        true => Ok(()),
        false => Err(ClusterError::Exists(name.clone())),
    }
}

/// Deletes a cluster with its state files, even while a killed run is still creating it: kind is
/// stopped, and the containers of its `docker` commands are removed until the last one has exited.
pub async fn delete(docker: &Docker, state: &StateDir, name: &str) -> Result<(), ClusterError> {
    kind_processes::stop(name).await;
    let deleted_by_kind = command::delete(name, &state.kubeconfig(name)).await;
    let (mut idle, mut docker_error) = (0, None);
    let deleted = wait::until(DELETION_TIMEOUT, Duration::from_millis(250), async || {
        let remaining = match containers(docker, name).await {
            Ok(remaining) => remaining,
            Err(error) => {
                docker_error = Some(error);
                return Probe::Pending("Docker does not answer".to_owned());
            }
        };
        let processes = kind_processes::list(name);
        idle = if remaining.is_empty() && processes.is_empty() { idle + 1 } else { 0 };
        if idle == IDLE_CHECKS {
            return Probe::Done(());
        }
        for container in &remaining {
            // The container may be busy. The next check retries.
            docker_error = docker.remove(&container.id).await.err().or(docker_error.take());
        }
        let names = remaining.into_iter().map(|container| container.name);
        let processes = processes.into_iter().map(|pid| format!("process {pid} of kind"));
        Probe::Pending(names.chain(processes).collect::<Vec<_>>().join(", "))
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
