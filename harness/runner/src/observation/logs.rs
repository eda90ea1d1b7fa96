//! Logs of a pod's containers.

use std::collections::BTreeMap;

use evictlab_evidence::{EvidenceSource, MissingEvidence, RecordedPod};
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, Client};

/// Logs of a pod's containers.
#[derive(Default)]
pub(crate) struct ContainerLogs {
    /// The logs by container name.
    pub(crate) logs: BTreeMap<String, String>,
    /// Each log that could not be read.
    pub(crate) missing: Vec<MissingEvidence>,
}

/// Reads the log of each container of a pod.
pub(crate) async fn container_logs(client: &Client, namespace: &str, pod: &RecordedPod) -> ContainerLogs {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut read = ContainerLogs::default();
    for container in pod.container_names().map(str::to_owned) {
        let params = LogParams { container: Some(container.clone()), ..LogParams::default() };
        match api.logs(pod.name(), &params).await {
            Ok(log) => {
                read.logs.insert(container, log);
            }
            Err(error) => {
                let source = EvidenceSource::Log { pod: pod.case_name().to_owned(), container };
                read.missing.push(MissingEvidence::new(source, error));
            }
        }
    }
    read
}
