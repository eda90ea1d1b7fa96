//! What every command needs that runs cases on kind clusters.

use evictlab_runner::cluster::{
    self, Cluster, ClusterError, Clusters, Docker, Keep, KindBackend, Kubelet, Made, Owner, StateDir,
};

use crate::failure::{Failure, bad_input, infrastructure};

/// Docker, kind, and the place for what is known of clusters.
pub struct Kind {
    /// The Docker host.
    pub docker: Docker,
    /// What is known of clusters.
    pub state: StateDir,
}

impl Kind {
    /// What is at hand. Fails where kind or Docker is missing.
    pub async fn at_hand() -> Result<Self, Failure> {
        let state = StateDir::open().map_err(infrastructure)?;
        let docker = Docker::connect().await.map_err(infrastructure)?;
        cluster::kind_version().await.map_err(infrastructure)?;
        Ok(Self { docker, state })
    }

    /// The kubelets of a kept cluster.
    pub async fn kubelets_of(&self, name: &str) -> Result<Vec<Kubelet>, Failure> {
        cluster::kubelets_of(&self.docker, &self.state, name).await.map_err(unusable)
    }

    /// Where a run on these kubelets gets its nodes. Nothing is made.
    pub async fn backend(
        &self,
        run: &str,
        kubelets: Vec<Kubelet>,
        clusters: Clusters,
        keep: Keep,
    ) -> Result<KindBackend, Failure> {
        let groups = match &clusters {
            Clusters::Kept(name) => {
                Cluster::open(&self.docker, &self.state, name, &kubelets).await.map_err(unusable)?;
                cluster::one_group(kubelets)
            }
            Clusters::New { .. } => cluster::group(kubelets).map_err(bad_input)?,
        };
        cluster::free(&self.docker, &clusters, groups.len()).await.map_err(bad_input)?;
        let made = Made { run: run.to_owned(), groups, clusters, owner: Owner::this(), keep };
        Ok(KindBackend::new(made, self.docker.clone(), self.state.clone()))
    }
}

/// A cluster that was asked for and cannot be used: it is not there or not for these kubelets, or it does not answer.
fn unusable(error: ClusterError) -> Failure {
    match error {
        ClusterError::Unknown(_) | ClusterError::NoWorker { .. } => bad_input(error),
        error => infrastructure(error),
    }
}
