//! Images that nodes have or pull by themselves: a small pod on each shows it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ExistingError;
use crate::stage::{Namespace, Placement, manifest};
use crate::wait::{self, Probe};

/// How long a pod may show no change: a pull from far away shows none.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a kubelet may fail to pull an image before that is its answer; it tries again after 10 s.
const STUCK: Duration = Duration::from_secs(15);
/// Why a container waits that has no image.
const WITHOUT_IMAGE: [&str; 5] =
    ["ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable"];

/// Shows that a node has an image or can pull it, whatever is in it.
pub(super) async fn is_had(
    namespace: &Namespace,
    node: &str,
    image: &str,
    nth: usize,
) -> Result<(), ExistingError> {
    let container = json!({"name": "image", "image": image, "command": ["true"]});
    let past = |pod: &Pod| {
        let status = container_status(pod)?;
        let waiting = status["state"]["waiting"]["reason"].as_str();
        let on_its_way = [None, Some("ContainerCreating"), Some("PodInitializing")].contains(&waiting);
        (!on_its_way || !status["state"]["terminated"].is_null() || !status["state"]["running"].is_null())
            .then_some(())
    };
    run(namespace, node, &format!("image{nth}-{node}"), container, past).await
}

/// Runs a pod of one container on a node, until `done` has an answer from it, and removes it.
pub(super) async fn run<T>(
    namespace: &Namespace,
    node: &str,
    name: &str,
    container: Value,
    done: impl Fn(&Pod) -> Option<T>,
) -> Result<T, ExistingError> {
    let image = container["image"].as_str().unwrap_or_default().to_owned();
    let pod = json!({
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]},
    });
    let as_named = |name: &str| name.to_owned();
    let placement = Placement::bound(&namespace.name, node, &as_named);
    let no_pods = |why: String| ExistingError::NoPods { node: node.to_owned(), why };
    let Some(pod) = pod.as_object() else { return Err(no_pods("it is none".to_owned())) };
    namespace.create_pod(&manifest(pod, &placement)).await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client().clone(), &namespace.name);
    let (mut stuck, mut why) = (None, String::new());
    let ran = wait::until(PATIENCE, Duration::from_millis(100), async || {
        let pod = match pods.get(name).await {
            Ok(pod) => pod,
            Err(error) => return Probe::Pending(error.to_string()),
        };
        let without = without_image(&pod);
        stuck = without.as_ref().map(|_| stuck.unwrap_or_else(Instant::now));
        if let (Some(since), Some(said)) = (stuck, &without) {
            // What it says while it waits to try again is shorter than why it failed.
            if said.len() > why.len() {
                why.clone_from(said);
            }
            if since.elapsed() >= STUCK {
                let (node, image, why) = (node.to_owned(), image.clone(), why.clone());
                return Probe::Done(Err(ExistingError::Image { node, image, why }));
            }
            return Probe::Pending("it waits for its image".to_owned());
        }
        match (done(&pod), phase(&pod)) {
            (Some(answer), _) => Probe::Done(Ok(answer)),
            (None, Some("Failed" | "Succeeded")) => Probe::Done(Err(no_pods(told(&pod)))),
            (None, _) => Probe::Pending(told(&pod)),
        }
    })
    .await;
    let now = DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    // It may be gone with its namespace already.
    let _gone = pods.delete(name, &now).await;
    ran.unwrap_or_else(|stalled| Err(no_pods(stalled.to_string())))
}

/// The status of a pod's only container.
pub(super) fn container_status(pod: &Pod) -> Option<Value> {
    serde_json::to_value(pod.status.as_ref()?.container_statuses.as_ref()?.first()?).ok()
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Why its container has no image, if so.
fn without_image(pod: &Pod) -> Option<String> {
    let status = container_status(pod)?;
    let waiting = &status["state"]["waiting"];
    let reason = waiting["reason"].as_str().filter(|reason| WITHOUT_IMAGE.contains(reason))?;
    let message = waiting["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
    Some(format!("{reason}{message}"))
}

/// What a pod's status says.
fn told(pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let of = |text: fn(&k8s_openapi::api::core::v1::PodStatus) -> &Option<String>| {
        status.and_then(|status| text(status).clone())
    };
    let state = container_status(pod).map(|status| status["state"].to_string());
    let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    let why = conditions.filter_map(|condition| condition.message.clone());
    [of(|status| &status.phase), of(|status| &status.reason), of(|status| &status.message), state]
        .into_iter()
        .flatten()
        .chain(why)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_without_an_image_says_why() {
        let pod = |state: Value| -> Pod {
            let statuses = json!([{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}]);
            serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": statuses}}))
                .unwrap()
        };
        let waiting =
            |reason: &str, message: &str| pod(json!({"waiting": {"reason": reason, "message": message}}));
        assert_eq!(
            without_image(&waiting("ErrImagePull", "no such host")).unwrap(),
            "ErrImagePull: no such host"
        );
        assert_eq!(without_image(&waiting("ContainerCreating", "")), None);
        assert_eq!(without_image(&pod(json!({"running": {}}))), None);
    }
}
