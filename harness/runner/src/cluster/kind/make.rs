//! A new cluster for a run, with what its cases need in its nodes.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cluster::ROLE_LABEL;
use super::{Base, Cluster, Container, Docker, Group, Record, StateDir, containers};
use crate::cluster::ClusterError;
use crate::images;
use crate::wait::{self, Probe};

/// kind's step that needs all of a small host. Those that follow, up to the nodes' joining, leave much of it unused.
const CONTROL_PLANE: &str = "Starting control-plane";

/// How long a new node's containerd may give the same error.
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes a cluster as [`Cluster::create`] does. The images come into its workers while kind makes nodes of them; where they cannot be had, kind is stopped.
pub async fn make(
    docker: &Docker,
    state: &StateDir,
    record: Record,
    plan: (&Group, &Base, usize),
    images: &[String],
    cancel: &CancellationToken,
    step: &dyn Fn(&str),
) -> Result<Cluster, ClusterError> {
    let name = record.cluster.clone();
    let (stop, has_time) = (cancel.child_token(), CancellationToken::new());
    let creating = async {
        let mut before = String::new();
        let told = |text: &str| {
            if before == CONTROL_PLANE {
                has_time.cancel();
            }
            text.clone_into(&mut before);
            step(text);
        };
        let made = Cluster::create(docker, state, record, plan, &stop, told).await;
        // Whatever kind called its steps.
        let over = if made.is_ok() { &has_time } else { &stop };
        over.cancel();
        made
    };
    let bringing = async {
        let furnishing = async {
            has_time.cancelled().await;
            furnish(docker, &name, images, step).await
        };
        let brought = stop.run_until_cancelled(furnishing).await.unwrap_or(Ok(()));
        if brought.is_err() {
            stop.cancel();
        }
        brought
    };
    match tokio::join!(creating, bringing) {
        // By us.
        (Err(ClusterError::Interrupted), Err(error)) if !cancel.is_cancelled() => Err(error),
        (made, brought) => {
            let cluster = made?;
            brought.map(|()| cluster)
        }
    }
}

/// Brings images into the workers, ready to be run.
async fn furnish(
    docker: &Docker,
    name: &str,
    images: &[String],
    step: &dyn Fn(&str),
) -> Result<(), ClusterError> {
    let all = containers(docker, name).await?;
    let is_worker =
        |container: &&Container| container.labels.get(ROLE_LABEL).is_some_and(|role| role == "worker");
    let workers: Vec<&str> = all.iter().filter(is_worker).map(|container| container.name.as_str()).collect();
    let answers = wait::until(PATIENCE, Duration::from_millis(250), async || {
        for worker in &workers {
            if let Err(error) = docker.run(worker, &["ctr", "version"]).await {
                return Probe::Pending(error.to_string());
            }
        }
        Probe::Done(())
    });
    answers.await.map_err(|stalled| ClusterError::NotReady { cluster: name.to_owned(), stalled })?;
    images::bring(docker, &workers, images, step).await?;
    if let Err(error) = images::unpack(docker, &workers, images).await {
        step(&format!("left packed, the first container takes longer: {error}"));
    }
    Ok(())
}
