//! A small pod that shows whether a node takes pods, and how long it needs for one.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use crate::cluster::Node;
use crate::stage::{Namespace, Placement, StageError, manifest};
use crate::wait::{self, Probe};

/// The image of the canary, as cases name it.
pub const CANARY: &str = "agnhost:2.52";

/// How long the canary may show no change before the node is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a pod of one container on the node and removes it. Returns how long it took from its creation until it ran: what this node and this
/// host need for a container today. The `Err` of the inner result says why it did not run.
pub async fn canary(
    node: &Node,
    namespace: &Namespace,
    image: &dyn Fn(&str) -> String,
) -> Result<Result<Duration, String>, StageError> {
    let name = format!("canary-{}", node.name);
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "canary", "image": CANARY, "command": ["sleep", "infinity"]}],
        },
    });
    let placement = Placement::bound(&namespace.name, &node.name, image);
    let Some(pod) = pod.as_object() else { return Ok(Err("no pod".to_owned())) };
    let began = Instant::now();
    namespace.create_pod(&manifest(pod, &placement)).await?;
    let pods: Api<Pod> = Api::namespaced(node.client().clone(), &namespace.name);
    let ran = wait::until(PATIENCE, Duration::from_millis(100), async || match pods.get(&name).await {
        Err(error) => Probe::Pending(error.to_string()),
        Ok(pod) => match phase(&pod).as_deref() {
            Some("Running") => Probe::Done(Ok(began.elapsed())),
            Some("Failed" | "Succeeded") => Probe::Done(Err(why(&pod))),
            _ => Probe::Pending(why(&pod)),
        },
    })
    .await;
    let now = DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    // It may be gone with its namespace already.
    let _gone = pods.delete(&name, &now).await;
    Ok(ran.unwrap_or_else(|stalled| Err(stalled.to_string())))
}

fn phase(pod: &Pod) -> Option<String> {
    pod.status.as_ref()?.phase.clone()
}

/// What a pod says about not running: its status, and why its container waits.
fn why(pod: &Pod) -> String {
    let Some(status) = &pod.status else { return format!("{} has no status", pod.name_any()) };
    let waiting = status.container_statuses.iter().flatten().filter_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        Some(
            [waiting.reason.clone(), waiting.message.clone()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(": "),
        )
    });
    [status.phase.clone(), status.reason.clone(), status.message.clone()]
        .into_iter()
        .flatten()
        .chain(waiting)
        .collect::<Vec<_>>()
        .join(", ")
}
