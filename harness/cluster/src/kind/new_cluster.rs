//! Creates a cluster for a run and loads the images of its cases meanwhile.

use std::cell::RefCell;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, NewCluster};
use super::containers::{containers, is_worker};
use super::state_dir::StateDir;
use crate::docker::Docker;
use crate::error::ClusterError;
use crate::images;
use crate::plan::{ClusterProgress, NodeRequirements};
use crate::wait::{self, Poll};

/// Step of kind that uses all CPUs of a small host. The later steps, until the workers join, leave
/// most of it idle.
const CONTROL_PLANE_STEP: &str = "Starting control-plane";

/// Maximum time for which the containerd of a new node may return the same error.
const CONTAINERD_TIMEOUT: Duration = Duration::from_secs(120);

/// Creates the clusters of a run with these requirements.
#[derive(Clone, Copy)]
pub(super) struct ClusterCreator<'a> {
    pub(super) docker: &'a Docker,
    pub(super) state: &'a StateDir,
    pub(super) requirements: &'a NodeRequirements,
}

impl ClusterCreator<'_> {
    /// Creates a cluster as [`Cluster::create`] does, and loads images into the workers while kind
    /// makes them join. If the images cannot be loaded, kind is stopped. Then gives the workers
    /// file systems of their own, if cases need them.
    pub(super) async fn create(
        self,
        new: NewCluster<'_>,
        cancel: &CancellationToken,
        progress: ClusterProgress<'_>,
    ) -> Result<Cluster, ClusterError> {
        let step = progress.step;
        let name = new.record.cluster.clone();
        let (stop, host_is_idle) = (cancel.child_token(), CancellationToken::new());
        let creation = async {
            let previous = RefCell::new(String::new());
            let step = |text: &str| {
                if previous.replace(text.to_owned()) == CONTROL_PLANE_STEP {
                    host_is_idle.cancel();
                }
                step(text);
            };
            let progress = ClusterProgress { step: &step, ..progress };
            let created = Cluster::create(self.docker, self.state, new, &stop, progress).await;
            // Images are loaded even if the steps of kind have other names.
            let signal = if created.is_ok() { &host_is_idle } else { &stop };
            signal.cancel();
            created
        };
        let loading = async {
            let load = async {
                host_is_idle.cancelled().await;
                self.load_images(&name, step).await
            };
            let loaded = stop.run_until_cancelled(load).await.unwrap_or(Ok(()));
            if loaded.is_err() {
                stop.cancel();
            }
            loaded
        };
        match tokio::join!(creation, loading) {
            // The failed load has interrupted the creation.
            (Err(ClusterError::Interrupted), Err(error)) if !cancel.is_cancelled() => Err(error),
            (created, loaded) => {
                let mut cluster = created?;
                loaded?;
                if self.requirements.own_disks {
                    let separated = cancel.run_until_cancelled(cluster.separate_disks(step)).await;
                    separated.unwrap_or(Err(ClusterError::Interrupted))?;
                }
                Ok(cluster)
            }
        }
    }

    /// Loads and unpacks images in the workers of a cluster.
    async fn load_images(self, name: &str, step: &dyn Fn(&str)) -> Result<(), ClusterError> {
        let all = containers(self.docker, name).await?;
        let workers = all.iter().filter(|container| is_worker(container));
        let workers: Vec<&str> = workers.map(|container| container.name.as_str()).collect();
        let containerd_ready = wait::until(CONTAINERD_TIMEOUT, Duration::from_millis(250), async || {
            for worker in &workers {
                if let Err(error) = self.docker.run(worker, &["ctr", "version"]).await {
                    return Poll::Pending(error.to_string());
                }
            }
            Poll::Done(())
        });
        containerd_ready
            .await
            .map_err(|stalled| ClusterError::NotReady { cluster: name.to_owned(), stalled })?;
        let images = &self.requirements.images;
        images::ensure_loaded(self.docker, &workers, images, step).await?;
        if let Err(error) = images::unpack(self.docker, &workers, images).await {
            step(&format!("images are not unpacked, first containers start slower: {error}"));
        }
        Ok(())
    }
}
