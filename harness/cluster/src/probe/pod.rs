//! Short-lived pods that test a node from the inside, and the images that a node has or can pull.

use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::pod::IMAGE_ERROR_REASONS;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector as store_objects};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::error::ProbeError;
use crate::bounded_name::bounded_name;
use crate::typed::Typed;
use crate::wait::{self, OUTAGE_TIMEOUT, Poll, StalledError, retry_while};
use crate::watch::{WatchBackoff, WatchDenied};
use crate::workload::{
    GracePeriod, Namespace, NamespaceGuards, NamespacePurpose, Placement, StageError, pod_manifest, uid_of,
};

/// Default of [`ProbePod::timeout`]: a pull from a remote registry shows no progress.
pub(crate) const POD_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum length of the name of a probe pod, which is also its host name. With its namespace and
/// its UID, the name is that of a directory on the node, which has at most 255 bytes.
const MAX_POD_NAME: usize = 63;
/// Maximum time for which a pull may fail. The kubelet retries after 10 s.
const PULL_RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// A namespace for probe pods, and a single watch of all of them. Dropping it ends the watch.
pub struct ProbePods {
    namespace: Arc<Namespace>,
    pods: Store<Typed<Pod>>,
    /// `Some` if the API server denies the watch.
    denied: watch::Receiver<Option<WatchDenied>>,
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
        let api: Api<Typed<Pod>> = Api::namespaced(namespace.client().clone(), &namespace.name);
        let (pods, writer) = reflector::store();
        let events = watcher(api, watcher::Config::default()).backoff(WatchBackoff::default());
        let (sender, denied) = watch::channel(None);
        let mut has_changes = false;
        let watch = store_objects(writer, events).for_each(move |event| {
            match event {
                // A watch that has worked may be denied for a moment, and is opened again.
                Err(error) if !has_changes => {
                    sender.send_replace(WatchDenied::of(&error));
                }
                Err(_) | Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(watcher::Event::InitDone) => {
                    sender.send_replace(None);
                }
                Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_)) => {
                    has_changes = true;
                    sender.send_replace(None);
                }
            }
            std::future::ready(())
        });
        let watch = AbortOnDropHandle::new(tokio::spawn(watch));
        Self { namespace: Arc::new(namespace), pods, denied, _watch: watch }
    }

    /// Waits until the API server denies the watch.
    async fn watch_denied(&self) -> WatchDenied {
        let mut receiver = self.denied.clone();
        let denied = receiver.wait_for(Option::is_some).await.ok().and_then(|denied| denied.clone());
        match denied {
            Some(denied) => denied,
            None => std::future::pending().await,
        }
    }

    /// The namespace of the pods.
    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// Creates a pod, waits until `done` returns a result for it, and deletes it.
    ///
    /// # Errors
    /// The node cannot pull the image, the pod ends without a result, the pod has not changed for
    /// its timeout, or the API server denies the watch.
    pub async fn run<T>(
        &self,
        pod: &ProbePod<'_>,
        done: impl Fn(&Pod) -> Option<T>,
    ) -> Result<T, ProbeError> {
        let same_name = |name: &str| name.to_owned();
        let placement = Placement::bound(&self.namespace.name, pod.node, &same_name);
        let name = pod.name();
        let manifest = pod_manifest(&pod.manifest(), &placement);
        let created = self.create_pod(&name, &manifest).await?;
        let reference = ObjectRef::new(&name).within(&self.namespace.name);
        // An earlier pod may have had the same name.
        let created = |found: &Arc<Typed<Pod>>| found.metadata.uid.as_deref() == uid_of(&created);
        let result = tokio::select! {
            biased;
            denied = self.watch_denied() => Ok(PodResult::Unwatched(denied)),
            result = pod.wait(done, || self.pods.get(&reference).filter(created)) => result,
        };
        let deleted = self.namespace.delete_pod_now(&name).await;
        let failed = |reason: String| ProbeError::Pod { node: pod.node.to_owned(), name, reason };
        match result {
            Ok(PodResult::Done(result)) => Ok(deleted.map(|()| result)?),
            Ok(PodResult::Ended(reason)) => Err(failed(reason)),
            Ok(PodResult::NoImage(reason)) => {
                Err(ProbeError::Image { node: pod.node.to_owned(), image: pod.image.to_owned(), reason })
            }
            Ok(PodResult::Unwatched(denied)) => Err(denied.into()),
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
    /// Start of the name of the pod, before that of the node.
    pub purpose: String,
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
    /// The API server denies the watch of the pods.
    Unwatched(WatchDenied),
}

impl ProbePod<'_> {
    /// Returns the name of the pod. Names of nodes may have 253 characters.
    pub fn name(&self) -> String {
        bounded_name(&format!("{}-{}", self.purpose, self.node), MAX_POD_NAME)
    }

    async fn wait<T>(
        &self,
        done: impl Fn(&Pod) -> Option<T>,
        read: impl Fn() -> Option<Arc<Typed<Pod>>>,
    ) -> Result<PodResult<T>, StalledError> {
        let mut pull = FailedPull::default();
        wait::until(self.timeout, Duration::from_millis(100), async || {
            let Some(pod) = read() else {
                return Poll::Pending("the watch has not reported the pod".to_owned());
            };
            let image_error = image_error(&pod);
            let is_waiting = image_error.is_some();
            if let Some(reason) = pull.update(image_error) {
                return Poll::Done(PodResult::NoImage(reason));
            }
            if is_waiting {
                return Poll::Pending("waiting for the image".to_owned());
            }
            match (done(&pod), phase(&pod)) {
                (Some(result), _) => Poll::Done(PodResult::Done(result)),
                (None, Some("Failed" | "Succeeded")) => Poll::Done(PodResult::Ended(describe(&pod))),
                (None, _) => Poll::Pending(describe(&pod)),
            }
        })
        .await
    }

    fn manifest(&self) -> serde_json::Map<String, Value> {
        let container = json!({"name": "probe", "image": self.image, "command": self.command});
        let spec = json!({
            "restartPolicy": "Never", "activeDeadlineSeconds": 3600,
            "terminationGracePeriodSeconds": GracePeriod::NONE.seconds(), "containers": [container],
        });
        [("metadata".to_owned(), json!({"name": self.name()})), ("spec".to_owned(), spec)]
            .into_iter()
            .collect()
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
    let reason = waiting.reason.as_deref().filter(|reason| IMAGE_ERROR_REASONS.contains(reason))?;
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

    #[test]
    fn names_of_pods_have_a_limit_and_are_those_of_one_node() {
        let pod = |node: &'static str| ProbePod {
            node,
            purpose: "image17".to_owned(),
            image: "i",
            command: &[],
            timeout: POD_TIMEOUT,
        };
        assert_eq!(pod("n1.example.com").name(), "image17-n1.example.com");
        let node = |end: &str| -> &'static str { format!("{}.{end}", "node".repeat(62)).leak() };
        let [one, other] = ["a", "b"].map(|end| pod(node(end)).name());
        assert!(
            one.len() <= MAX_POD_NAME && one.starts_with("image17-node") && one != other,
            "{one} {other}"
        );
    }

    /// An API server that creates any pod, and denies the list of pods or their watch.
    fn denying(verb: &'static str) -> Client {
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| async move {
            let query = request.uri().query().unwrap_or_default();
            let is_watch = query.contains("watch=true");
            let is_list = request.method() == http::Method::GET && !is_watch;
            let (code, body) = if (verb == "list" && is_list) || (verb == "watch" && is_watch) {
                let message = format!("pods is forbidden: User \"u\" cannot {verb} resource \"pods\"");
                (403, json!({"kind": "Status", "status": "Failure", "message": message, "code": 403}))
            } else if is_list {
                (200, json!({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}))
            } else {
                (200, json!({"kind": "Pod", "metadata": {"name": "p", "uid": "u"}}))
            };
            let body = kube::client::Body::from(body.to_string().into_bytes());
            http::Response::builder().status(code).body(body)
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_denied_watch_is_an_error_that_names_the_permission() {
        for verb in ["list", "watch"] {
            let namespace = Namespace::with_client("evictlab-nodes-a", denying(verb));
            let pods = ProbePods::watch(namespace);
            let (began, purpose) = (Instant::now(), "look".to_owned());
            let pod = ProbePod { node: "n", purpose, image: "i", command: &[], timeout: POD_TIMEOUT };
            let error = pods.wait_for_image(&pod).await.unwrap_err().to_string();
            assert!(error.contains(&format!("permission to {verb} is denied: pods is forbidden")), "{error}");
            assert!(began.elapsed() < Duration::from_secs(10), "{verb}: {:?}", began.elapsed());
        }
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
