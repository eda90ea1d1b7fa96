//! Docker, kind and the state directory, for commands that run cases on kind clusters.

use evictlab_cluster::{
    Cluster, ClusterError, ClusterSource, Docker, KeepPolicy, KindBackend, KindOptions, Kubelet, Owner,
    StateDir,
};

use crate::failure::Failure;
use crate::messages::print_warning;

/// Docker and the state directory.
pub(crate) struct KindContext {
    pub(crate) docker: Docker,
    pub(crate) state: StateDir,
}

impl KindContext {
    /// Connects to Docker and checks the version of kind.
    ///
    /// # Errors
    ///
    /// kind is not installed, or Docker does not answer.
    pub(crate) async fn connect() -> Result<Self, Failure> {
        let state = StateDir::open().map_err(Failure::infrastructure)?;
        let docker = Docker::connect().await.map_err(Failure::infrastructure)?;
        evictlab_cluster::kind_version().await.map_err(Failure::infrastructure)?;
        Ok(Self { docker, state })
    }

    /// Returns the kubelets of a kept cluster.
    pub(crate) async fn kubelets_of(&self, name: &str) -> Result<Vec<Kubelet>, Failure> {
        evictlab_cluster::kubelets_of(&self.docker, &self.state, name, &print_warning)
            .await
            .map_err(cluster_failure)
    }

    /// Returns the backend for a run on these kubelets. Creates no resources.
    pub(crate) async fn backend(
        &self,
        run: &str,
        kubelets: Vec<Kubelet>,
        clusters: ClusterSource,
        keep: KeepPolicy,
    ) -> Result<KindBackend, Failure> {
        let groups = match &clusters {
            ClusterSource::Kept(name) => {
                Cluster::open(&self.docker, &self.state, name, &kubelets, &print_warning)
                    .await
                    .map_err(cluster_failure)?;
                evictlab_cluster::single_group(kubelets)
            }
            ClusterSource::New { .. } => {
                evictlab_cluster::group_by_skew(kubelets).map_err(Failure::bad_input)?
            }
        };
        evictlab_cluster::ensure_names_unused(&self.docker, &clusters, groups.len())
            .await
            .map_err(Failure::bad_input)?;
        let options = KindOptions { run: run.to_owned(), groups, clusters, owner: Owner::current(), keep };
        Ok(KindBackend::new(options, self.docker.clone(), self.state.clone()))
    }
}

/// Returns exit status 2 for a cluster that does not exist or does not have the requested kubelets,
/// else 4.
fn cluster_failure(error: ClusterError) -> Failure {
    match error {
        ClusterError::Unknown(_) | ClusterError::NoWorker { .. } => {
            Failure::bad_input(error).of_option("cluster")
        }
        error => Failure::infrastructure(error),
    }
}
