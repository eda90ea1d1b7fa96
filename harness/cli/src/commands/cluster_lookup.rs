//! Finds a cluster that evictlab created, by its name.

use evictlab_cluster::{ClusterError, Docker, KnownCluster, ServedCluster, StateDir};

use crate::failure::Failure;

/// A cluster that evictlab created.
pub(super) enum Found {
    Embedded(Box<ServedCluster>),
    Kind(Docker, Box<KnownCluster>),
}

/// Returns the cluster with this name. An embedded one needs no Docker.
pub(super) async fn find_cluster(state: &StateDir, name: &str) -> Result<Found, Failure> {
    if let Some(served) = served(state, name) {
        return Ok(Found::Embedded(Box::new(served)));
    }
    let unknown = || Failure::bad_input(ClusterError::Unknown(name.to_owned())).of_value("cluster", name);
    let docker = match Docker::connect().await {
        Ok(docker) => docker,
        Err(_) if state.read(name).is_none() => return Err(unknown()),
        Err(error) => return Err(Failure::infrastructure(error)),
    };
    let all = evictlab_cluster::find(&docker, state).await.map_err(Failure::infrastructure)?;
    let found = all.into_iter().find(|found| found.record.cluster == name).ok_or_else(unknown)?;
    Ok(Found::Kind(docker, Box::new(found)))
}

/// Returns the embedded cluster with this name, if it is served or stopped.
pub(super) fn served(state: &StateDir, name: &str) -> Option<ServedCluster> {
    ServedCluster::list(state).into_iter().find(|served| served.cluster == name)
}
