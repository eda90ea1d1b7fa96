//! Short-lived pods that test a node from the inside, and the images that a node has or can pull.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::error::ProbeError;
use crate::wait::{self, Probe};
use crate::workload::{Namespace, Placement, pod_manifest};

/// Maximum time without a change of the pod. A pull from a remote registry shows no progress.
const POD_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum time for which a pull may fail. The kubelet retries after 10 s.
const PULL_RETRY_TIMEOUT: Duration = Duration::from_secs(15);
/// Reasons of a waiting container without an image.
const IMAGE_ERRORS: [&str; 5] =
    ["ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable"];

/// A pod with one container on one node.
pub(crate) struct ProbePod<'a> {
    /// Namespace of the pod.
    pub(crate) namespace: &'a Namespace,
    /// Node of the pod.
    pub(crate) node: &'a str,
    /// Name of the pod.
    pub(crate) name: String,
    /// Image of the container.
    pub(crate) image: &'a str,
    /// Command of the container.
    pub(crate) command: &'a [&'a str],
}

impl ProbePod<'_> {
    /// Returns when the node has the image. The container may fail.
    pub(crate) async fn wait_for_image(&self) -> Result<(), ProbeError> {
        self.run(|pod| has_image(pod).then_some(())).await
    }

    /// Creates the pod, polls it until `done` returns a result, and deletes the pod.
    ///
    /// # Errors
    /// The node cannot pull the image, the pod ends without a result, or the pod has not changed
    /// for [`POD_TIMEOUT`].
    pub(crate) async fn run<T>(&self, done: impl Fn(&Pod) -> Option<T>) -> Result<T, ProbeError> {
        let same_name = |name: &str| name.to_owned();
        let placement = Placement::bound(&self.namespace.name, self.node, &same_name);
        let failed = |reason: String| ProbeError::Pod { node: self.node.to_owned(), reason };
        self.namespace.create_pod(&pod_manifest(&self.manifest(), &placement)).await?;
        let pods: Api<Pod> = Api::namespaced(self.namespace.client().clone(), &self.namespace.name);
        let mut pull = FailedPull::default();
        let result = wait::until(POD_TIMEOUT, Duration::from_millis(100), async || {
            let pod = match pods.get(&self.name).await {
                Ok(pod) => pod,
                Err(error) => return Probe::Pending(error.to_string()),
            };
            let image_error = image_error(&pod);
            let is_waiting = image_error.is_some();
            if let Some(reason) = pull.update(image_error) {
                let (node, image) = (self.node.to_owned(), self.image.to_owned());
                return Probe::Done(Err(ProbeError::Image { node, image, reason }));
            }
            if is_waiting {
                return Probe::Pending("waiting for the image".to_owned());
            }
            match (done(&pod), phase(&pod)) {
                (Some(result), _) => Probe::Done(Ok(result)),
                (None, Some("Failed" | "Succeeded")) => Probe::Done(Err(failed(describe(&pod)))),
                (None, _) => Probe::Pending(describe(&pod)),
            }
        })
        .await;
        let now = DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
        // The pod may have been deleted with its namespace.
        let _ignored = pods.delete(&self.name, &now).await;
        result.unwrap_or_else(|stalled| Err(failed(stalled.to_string())))
    }

    fn manifest(&self) -> serde_json::Map<String, Value> {
        let container = json!({"name": "probe", "image": self.image, "command": self.command});
        let spec = json!({
            "restartPolicy": "Never", "activeDeadlineSeconds": 3600, "terminationGracePeriodSeconds": 0,
            "containers": [container],
        });
        [("metadata".to_owned(), json!({"name": self.name})), ("spec".to_owned(), spec)].into_iter().collect()
    }
}

/// Pull errors since the container has been waiting for its image.
#[derive(Default)]
struct FailedPull {
    since: Option<Instant>,
    reason: String,
}

impl FailedPull {
    /// Records the state of a poll; returns the reason if the pull has failed for
    /// [`PULL_RETRY_TIMEOUT`].
    fn update(&mut self, error: Option<String>) -> Option<String> {
        let Some(error) = error else {
            self.since = None;
            return None;
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        // The message of the back-off is shorter than the message of the failed pull.
        if error.len() > self.reason.len() {
            self.reason = error;
        }
        (since.elapsed() >= PULL_RETRY_TIMEOUT).then(|| self.reason.clone())
    }
}

/// Status of the only container of a pod.
pub(crate) fn container_status(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

/// Returns whether the container has passed the states that precede its image.
fn has_image(pod: &Pod) -> bool {
    let Some(state) = container_status(pod).and_then(|status| status.state.as_ref()) else { return false };
    let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
    let is_early = matches!(waiting, None | Some("ContainerCreating" | "PodInitializing"));
    !is_early || state.terminated.is_some() || state.running.is_some()
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Reason and message of a container that waits because its image cannot be pulled.
fn image_error(pod: &Pod) -> Option<String> {
    let waiting = container_status(pod)?.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| IMAGE_ERRORS.contains(reason))?;
    let message = waiting.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    Some(format!("{reason}{message}"))
}

/// Phase, reason, message, container state and condition messages of a pod.
fn describe(pod: &Pod) -> String {
    let Some(status) = pod.status.as_ref() else { return String::new() };
    let state = container_status(pod).map(|container| json!(container.state).to_string());
    let conditions = status.conditions.iter().flatten().filter_map(|condition| condition.message.clone());
    [status.phase.clone(), status.reason.clone(), status.message.clone(), state]
        .into_iter()
        .flatten()
        .chain(conditions)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(state: Value) -> Pod {
        let statuses = json!([{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}]);
        serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": statuses}})).unwrap()
    }

    fn waiting(reason: &str, message: &str) -> Pod {
        pod(json!({"waiting": {"reason": reason, "message": message}}))
    }

    #[test]
    fn image_errors_have_a_reason() {
        let error = image_error(&waiting("ErrImagePull", "no such host"));
        assert_eq!(error.unwrap(), "ErrImagePull: no such host");
        assert_eq!(image_error(&waiting("ContainerCreating", "")), None);
        assert_eq!(image_error(&pod(json!({"running": {}}))), None);
    }

    #[test]
    fn failed_containers_have_their_image() {
        assert!(has_image(&waiting("CreateContainerError", "no such file")));
        assert!(has_image(&pod(json!({"running": {}}))));
        assert!(has_image(&pod(json!({"terminated": {"exitCode": 127}}))));
        assert!(!has_image(&waiting("ContainerCreating", "")));
        assert!(!has_image(&pod(json!({}))));
    }

    #[tokio::test(start_paused = true)]
    async fn failed_pulls_report_the_longest_message_after_a_retry() {
        let mut pull = FailedPull::default();
        assert_eq!(pull.update(Some("ErrImagePull: no such host".to_owned())), None);
        tokio::time::advance(PULL_RETRY_TIMEOUT).await;
        let reason = pull.update(Some("ImagePullBackOff".to_owned()));
        assert_eq!(reason.as_deref(), Some("ErrImagePull: no such host"));
    }
}
