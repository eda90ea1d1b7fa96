//! Logs of a pod's containers.

use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The fields of a pod that name its containers.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerNames {
    init_containers: Vec<ContainerName>,
    containers: Vec<ContainerName>,
    ephemeral_containers: Vec<ContainerName>,
}

#[derive(Deserialize)]
struct ContainerName {
    name: String,
}

/// Returns the log of each container of a pod, by container name. The log of a container that the
/// kubelet has removed is empty.
pub(crate) async fn container_logs(client: &Client, namespace: &str, pod: &Value) -> Map<String, Value> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod_name = evictlab_evidence::pod_name(pod);
    let spec = pod.get("spec").and_then(|spec| ContainerNames::deserialize(spec).ok()).unwrap_or_default();
    let mut logs = Map::new();
    for container in [spec.init_containers, spec.containers, spec.ephemeral_containers].into_iter().flatten()
    {
        let params = LogParams { container: Some(container.name.clone()), ..LogParams::default() };
        let log = api.logs(&pod_name, &params).await.unwrap_or_default();
        logs.insert(container.name, log.into());
    }
    logs
}
