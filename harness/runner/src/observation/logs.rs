//! Logs of a pod's containers.

use evictlab_evidence::{EvidenceSource, MissingEvidence};
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

/// Logs of a pod's containers.
#[derive(Default)]
pub(crate) struct ContainerLogs {
    /// The logs by container name.
    pub(crate) logs: Map<String, Value>,
    /// Each log that could not be read.
    pub(crate) missing: Vec<MissingEvidence>,
}

/// Reads the log of each container of a pod.
pub(crate) async fn container_logs(client: &Client, namespace: &str, pod: &Value) -> ContainerLogs {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod_name = evictlab_evidence::pod_name(pod);
    let spec = pod.get("spec").and_then(|spec| ContainerNames::deserialize(spec).ok()).unwrap_or_default();
    let mut read = ContainerLogs::default();
    for container in [spec.init_containers, spec.containers, spec.ephemeral_containers].into_iter().flatten()
    {
        let params = LogParams { container: Some(container.name.clone()), ..LogParams::default() };
        match api.logs(&pod_name, &params).await {
            Ok(log) => {
                read.logs.insert(container.name, log.into());
            }
            Err(error) => {
                let source = EvidenceSource::Log { pod: pod_name.clone(), container: container.name };
                read.missing.push(MissingEvidence::new(source, error));
            }
        }
    }
    read
}
