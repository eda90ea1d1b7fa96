//! Canary pods: they show that a node starts pods, and how long a container takes to start.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use evictlab_cluster::wait::{self, Probe};
use evictlab_cluster::workload::{Namespace, Placement, StageError, pod_manifest};
use evictlab_cluster::{CANARY_IMAGE, Node};

/// Limit for a canary pod without any change of its status.
const CANARY_PROGRESS_TIMEOUT: Duration = Duration::from_secs(120);

/// Failure of a canary pod.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CanaryError {
    /// The pod did not run.
    #[error("failed to run a canary pod on node {node}: {why}")]
    NotRunning {
        /// The node.
        node: String,
        /// Status of the pod.
        why: String,
    },
    /// The API server refused the pod or did not answer.
    #[error(transparent)]
    Create(#[from] StageError),
}

/// Runs a pod with one container on the node and deletes it. Returns the time from its creation
/// until it ran, which is the current container start time of this node.
///
/// # Errors
/// The pod could not be created, ended, or stayed without progress.
pub(crate) async fn run_canary(
    node: &Node,
    namespace: &Namespace,
    image: &dyn Fn(&str) -> String,
) -> Result<Duration, CanaryError> {
    let not_running = |why: String| CanaryError::NotRunning { node: node.name.clone(), why };
    let name = format!("canary-{}", node.name);
    let placement = Placement::bound(&namespace.name, &node.name, image);
    let pod = canary_manifest(&name);
    let pod = pod.as_object().ok_or_else(|| not_running("the manifest is not an object".to_owned()))?;
    let began = Instant::now();
    namespace.create_pod(&pod_manifest(pod, &placement)).await?;
    let pods: Api<Pod> = Api::namespaced(node.client().clone(), &namespace.name);
    let poll = Duration::from_millis(100);
    let result = wait::until(CANARY_PROGRESS_TIMEOUT, poll, async || match pods.get(&name).await {
        Err(error) => Probe::Pending(error.to_string()),
        Ok(pod) => match phase(&pod) {
            Some("Running") => Probe::Done(Ok(began.elapsed())),
            Some("Failed" | "Succeeded") => Probe::Done(Err(describe_status(&pod))),
            _ => Probe::Pending(describe_status(&pod)),
        },
    })
    .await;
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    // A failure is ignored: the pod may already be deleted together with its namespace.
    let _ = pods.delete(&name, &at_once).await;
    result.unwrap_or_else(|stalled| Err(stalled.to_string())).map_err(not_running)
}

fn canary_manifest(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 3600,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "canary", "image": CANARY_IMAGE, "command": ["sleep", "infinity"]}],
        },
    })
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Returns the phase, reason and message of a pod, and why its containers wait.
fn describe_status(pod: &Pod) -> String {
    let Some(status) = &pod.status else { return format!("{} has no status", pod.name_any()) };
    let waiting = status.container_statuses.iter().flatten().filter_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let parts: Vec<&str> =
            [&waiting.reason, &waiting.message].into_iter().flatten().map(String::as_str).collect();
        Some(parts.join(": "))
    });
    let of_pod = [&status.phase, &status.reason, &status.message].into_iter().flatten().cloned();
    of_pod.chain(waiting).collect::<Vec<_>>().join(", ")
}
