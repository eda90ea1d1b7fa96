//! The logs of a pod's containers.

use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, Client};
use serde_json::{Map, Value};

/// What each container of a pod has printed, by name. A container that has no log any more has an empty one.
pub async fn logs(client: &Client, namespace: &str, pod: &Value) -> Map<String, Value> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let containers = lists.into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let mut all = Map::new();
    for container in containers.filter_map(|container| container["name"].as_str()) {
        let wanted = LogParams { container: Some(container.to_owned()), ..LogParams::default() };
        let text = api.logs(name, &wanted).await.unwrap_or_default();
        all.insert(container.to_owned(), text.into());
    }
    all
}
