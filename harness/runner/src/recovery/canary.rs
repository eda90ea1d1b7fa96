//! Canary pods: they show that a node starts pods, and how long a container takes to start.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use evictlab_cluster::{CANARY_IMAGE, Node, ProbeError, ProbePod, ProbePods};

/// Limit for a canary pod without any change of its status.
const CANARY_PROGRESS_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs a pod with one container on the node and deletes it. Returns the time from its creation
/// until it ran, which is the current container start duration of this node.
///
/// # Errors
/// The pod could not be created, ended, or stayed without progress.
pub(crate) async fn run_canary(
    node: &Node,
    pods: &ProbePods,
    image: &dyn Fn(&str) -> String,
) -> Result<Duration, ProbeError> {
    let image = image(CANARY_IMAGE);
    let pod = ProbePod {
        node: &node.name,
        purpose: "canary".to_owned(),
        image: &image,
        command: &["sleep", "infinity"],
        timeout: CANARY_PROGRESS_TIMEOUT,
    };
    let began = Instant::now();
    pods.run(&pod, |pod| is_running(pod).then(|| began.elapsed())).await
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
}
