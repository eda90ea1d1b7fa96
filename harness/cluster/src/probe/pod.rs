//! Short-lived pods that test a node from the inside, and the images that a node has or can pull.

use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::pod::IMAGE_ERRORS;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector as store_objects};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::error::ProbeError;
use crate::wait::{self, OUTAGE_TIMEOUT, Probe, StalledError, WatchBackoff, retry_while};
use crate::workload::{Namespace, NamespaceGuards, NamespacePurpose, Placement, StageError, pod_manifest};

/// Default of [`ProbePod::timeout`]: a pull from a remote registry shows no progress.
pub(crate) const POD_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum time for which a pull may fail. The kubelet retries after 10 s.
const PULL_RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// A namespace for probe pods, and a single watch of all of them. Dropping it ends the watch.
pub struct ProbePods {
    namespace: Arc<Namespace>,
    pods: Store<Pod>,
    _watch: AbortOnDropHandle<()>,
}

impl ProbePods {
    /// Creates a namespace for the probe pods of a run. It needs no limit of pods: every probe pod
    /// has a deadline, and no controller creates one.
    ///
    /// # Errors
    /// The API server refuses the namespace or does not answer for 100 s.
    pub async fn create(
        client: &Client,
        run: &str,
        purpose: NamespacePurpose<'_>,
        guards: NamespaceGuards,
    ) -> Result<Self, StageError> {
        let guards = NamespaceGuards { max_pods: None, ..guards };
        // A request that failed may have created one: it is deleted with those of the run.
        let create = async || Namespace::create(client, run, purpose, guards).await;
        Ok(Self::watch(retry_while(OUTAGE_TIMEOUT, StageError::is_unavailable, create).await?))
    }

    fn watch(namespace: Namespace) -> Self {
        let api: Api<Pod> = Api::namespaced(namespace.client().clone(), &namespace.name);
        let (pods, writer) = reflector::store();
        let events = watcher(api, watcher::Config::default()).backoff(WatchBackoff::default());
        let watch = store_objects(writer, events).for_each(|_| std::future::ready(()));
        let watch = AbortOnDropHandle::new(tokio::spawn(watch));
        Self { namespace: Arc::new(namespace), pods, _watch: watch }
    }

    /// The namespace of the pods.
    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// Creates a pod, waits until `done` returns a result for it, and deletes it.
    ///
    /// # Errors
    /// The node cannot pull the image, the pod ends without a result, or the pod has not changed
    /// for its timeout.
    pub async fn run<T>(
        &self,
        pod: &ProbePod<'_>,
        done: impl Fn(&Pod) -> Option<T>,
    ) -> Result<T, ProbeError> {
        let same_name = |name: &str| name.to_owned();
        let placement = Placement::bound(&self.namespace.name, pod.node, &same_name);
        let (node, name) = (pod.node.to_owned(), pod.name.clone());
        let failed = |reason: String| ProbeError::Pod { node, name, reason };
        let manifest = pod_manifest(&pod.manifest(), &placement);
        let created = self.create_pod(&pod.name, &manifest).await?;
        let reference = ObjectRef::new(&pod.name).within(&self.namespace.name);
        // An earlier pod may have had the same name.
        let created = |found: &Arc<Pod>| found.metadata.uid.as_deref() == created["metadata"]["uid"].as_str();
        let result = pod.wait(done, || self.pods.get(&reference).filter(created)).await;
        let deleted = self.namespace.delete_pod_now(&pod.name).await;
        match result {
            Ok(PodResult::Done(result)) => Ok(deleted.map(|()| result)?),
            Ok(PodResult::Ended(reason)) => Err(failed(reason)),
            Ok(PodResult::NoImage(reason)) => {
                Err(ProbeError::Image { node: pod.node.to_owned(), image: pod.image.to_owned(), reason })
            }
            Err(stalled) => Err(failed(stalled.to_string())),
        }
    }

    /// Creates a pod, also after an outage of the API server.
    async fn create_pod(&self, name: &str, manifest: &Value) -> Result<Value, StageError> {
        let mut is_repeated = false;
        let create = async || {
            // The request that failed may have created the pod.
            if std::mem::replace(&mut is_repeated, true) {
                self.namespace.delete_pod_now(name).await?;
            }
            self.namespace.create_pod(manifest).await
        };
        retry_while(OUTAGE_TIMEOUT, StageError::is_unavailable, create).await
    }

    /// Returns when the node has the image of the pod. The container may fail.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) async fn wait_for_image(&self, pod: &ProbePod<'_>) -> Result<(), ProbeError> {
        self.run(pod, |pod| has_image(pod).then_some(())).await
    }
}

/// A pod with one container on one node.
pub struct ProbePod<'a> {
    /// Node of the pod.
    pub node: &'a str,
    /// Name of the pod.
    pub name: String,
    /// Image of the container.
    pub image: &'a str,
    /// Command of the container.
    pub command: &'a [&'a str],
    /// Maximum time without a change of the pod.
    pub timeout: Duration,
}

/// End of the wait for a probe pod.
enum PodResult<T> {
    Done(T),
    /// The pod ended without a result; its status.
    Ended(String),
    /// The image could not be pulled; the message of the kubelet.
    NoImage(String),
}

impl ProbePod<'_> {
    async fn wait<T>(
        &self,
        done: impl Fn(&Pod) -> Option<T>,
        read: impl Fn() -> Option<Arc<Pod>>,
    ) -> Result<PodResult<T>, StalledError> {
        let mut pull = FailedPull::default();
        wait::until(self.timeout, Duration::from_millis(100), async || {
            let Some(pod) = read() else {
                return Probe::Pending("the watch has not reported the pod".to_owned());
            };
            let image_error = image_error(&pod);
            let is_waiting = image_error.is_some();
            if let Some(reason) = pull.update(image_error) {
                return Probe::Done(PodResult::NoImage(reason));
            }
            if is_waiting {
                return Probe::Pending("waiting for the image".to_owned());
            }
            match (done(&pod), phase(&pod)) {
                (Some(result), _) => Probe::Done(PodResult::Done(result)),
                (None, Some("Failed" | "Succeeded")) => Probe::Done(PodResult::Ended(describe(&pod))),
                (None, _) => Probe::Pending(describe(&pod)),
            }
        })
        .await
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
