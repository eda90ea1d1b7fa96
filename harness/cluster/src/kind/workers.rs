//! Workers of a cluster: listing, selecting, and installing kubelet binaries.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::CgroupVersion;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::config::{KUBELET_LABEL, label_value};
use super::node_disk::has_own_disk;
use crate::docker::Docker;
use crate::error::{ClusterError, StartCause};
use crate::kubelet::Kubelet;
use crate::node::{KindNode, KubeletProxy, Node, NodeBackend, is_ready};
use crate::typed::Typed;
use crate::wait::{self, Poll, StalledError};

/// Maximum time without any change while an installed kubelet starts.
const KUBELET_START_TIMEOUT: Duration = Duration::from_secs(60);

/// Version that the kubelet of a node reports.
fn reported_version(node: &ApiNode) -> Option<&str> {
    Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.as_str())
}

/// Installs the binaries among these kubelets into the workers with their labels, which then have
/// the versions of the binaries. `progress` receives one line per binary.
pub(super) async fn install_kubelets(
    docker: &Docker,
    client: &Client,
    kubelets: &[Kubelet],
    workers: &mut [Node],
    progress: &dyn Fn(&str),
) -> Result<(), ClusterError> {
    for kubelet in kubelets {
        let Some(path) = &kubelet.binary else { continue };
        progress(&format!("installing kubelet {}", kubelet.label));
        let bytes =
            std::fs::read(path).map_err(|source| ClusterError::Binary { path: path.clone(), source })?;
        let label = label_value(&kubelet.label);
        for worker in workers.iter_mut().filter(|worker| worker.kubelet == label) {
            replace_binary(docker, &worker.name, &bytes).await?;
            if let Err(stalled) = wait_for_version(client, &worker.name, kubelet).await {
                let (binary, node) = (path.clone(), worker.name.clone());
                let mut log = worker.backend.log_tail().await.unwrap_or_else(|error| error.to_string());
                if let Some(help) = StartCause::of_log(&log).and_then(|cause| cause.help) {
                    log = format!("{}\nhelp: {help}", log.trim_end());
                }
                return Err(ClusterError::KubeletNotStarted { binary, node, stalled, log });
            }
            set_kubelet_label(client, &worker.name, &label).await?;
            worker.version = kubelet.version.clone();
        }
    }
    Ok(())
}

/// Replaces the kubelet binary of a worker and restarts the kubelet.
async fn replace_binary(docker: &Docker, worker: &str, binary: &[u8]) -> Result<(), ClusterError> {
    // A running executable cannot be overwritten.
    docker.run(worker, &["systemctl", "stop", "kubelet"]).await?;
    docker.write_file(worker, "/usr/bin/kubelet", 0o755, binary).await?;
    docker.run(worker, &["systemctl", "start", "kubelet"]).await?;
    Ok(())
}

/// Waits until the installed kubelet answers and the node is ready with its version. The previous
/// kubelet has exited.
async fn wait_for_version(client: &Client, worker: &str, kubelet: &Kubelet) -> Result<(), StalledError> {
    let nodes: Api<Typed<ApiNode>> = Api::all(client.clone());
    wait::until(KUBELET_START_TIMEOUT, Duration::from_millis(250), async || {
        if let Err(error) = KubeletProxy::new(client, worker).healthz().await {
            return Poll::Pending(format!("the kubelet does not answer: {error}"));
        }
        match nodes.get(worker).await {
            Err(error) => Poll::Pending(error.to_string()),
            Ok(node) => match reported_version(&node) {
                Some(found) if found == kubelet.version.to_string() && is_ready(&node) => Poll::Done(()),
                found => Poll::Pending(format!("the node reports version {}", found.unwrap_or("none"))),
            },
        }
    })
    .await
}

/// Sets the kubelet label of a worker.
async fn set_kubelet_label(client: &Client, worker: &str, label: &str) -> Result<(), ClusterError> {
    let nodes: Api<Typed<ApiNode>> = Api::all(client.clone());
    let labels = Patch::Merge(json!({"metadata": {"labels": {KUBELET_LABEL: label}}}));
    let patched = nodes.patch(worker, &PatchParams::default(), &labels).await;
    patched
        .map(drop)
        .map_err(|source| ClusterError::Label { node: worker.to_owned(), source: Box::new(source) })
}

/// Selects the workers for these kubelets and gives them the labels of the kubelets; returns all
/// workers if `kubelets` is empty.
///
/// # Errors
/// A kubelet has no worker.
pub(super) fn select_workers(all: Vec<Node>, kubelets: &[Kubelet]) -> Result<Vec<Node>, Unassigned> {
    if kubelets.is_empty() {
        return Ok(all);
    }
    let labels: Vec<&str> = all.iter().map(|node| node.kubelet.as_str()).collect();
    let assigned = assign(&labels, kubelets)?;
    let named = |node: Node| Some(Node { kubelet: assigned.get(&node.kubelet)?.clone(), ..node });
    Ok(all.into_iter().filter_map(named).collect())
}

/// The label of a kubelet without a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unassigned(pub(super) String);

/// Maps labels of workers to labels of kubelets. A binary without a worker, such as one that was
/// rebuilt, gets the worker of a kubelet that is not requested.
fn assign(workers: &[&str], kubelets: &[Kubelet]) -> Result<BTreeMap<String, String>, Unassigned> {
    let requested: Vec<String> = kubelets.iter().map(|kubelet| label_value(&kubelet.label)).collect();
    let mut assigned: BTreeMap<String, String> = BTreeMap::new();
    let (present, missing): (Vec<_>, Vec<_>) =
        kubelets.iter().zip(&requested).partition(|(_, label)| workers.contains(&label.as_str()));
    assigned.extend(present.into_iter().map(|(_, label)| (label.clone(), label.clone())));
    for (kubelet, label) in missing {
        let spare = workers.iter().find(|worker| !assigned.contains_key(**worker));
        match spare.filter(|_| kubelet.binary.is_some()) {
            Some(spare) => assigned.insert((*spare).to_owned(), label.clone()),
            None => return Err(Unassigned(label.clone())),
        };
    }
    Ok(assigned)
}

/// Verifies the versions of the workers of these kubelets.
pub(super) fn verify_versions(workers: &[Node], kubelets: &[Kubelet]) -> Result<(), ClusterError> {
    for node in workers {
        let kubelet = kubelets.iter().find(|kubelet| label_value(&kubelet.label) == node.kubelet);
        if let Some(kubelet) = kubelet.filter(|kubelet| kubelet.version != node.version) {
            return Err(ClusterError::VersionMismatch {
                node: node.name.clone(),
                found: node.version.to_string(),
                claimed: kubelet.version.clone(),
            });
        }
    }
    Ok(())
}

/// Lists all nodes with a kubelet label. Their disks count as shared until [`find_own_disks`].
pub(super) async fn all_workers(
    docker: &Docker,
    client: &Client,
    cluster: &str,
    cgroup: CgroupVersion,
) -> Result<Vec<Node>, ClusterError> {
    let nodes: Api<Typed<ApiNode>> = Api::all(client.clone());
    let failed = |source| ClusterError::Workers { cluster: cluster.to_owned(), source: Box::new(source) };
    let listed = nodes.list(&ListParams::default().labels(KUBELET_LABEL)).await.map_err(failed)?;
    let worker = |node: Typed<ApiNode>| {
        let name = node.name_any();
        let version = reported_version(&node).unwrap_or_default().parse();
        let version = version.map_err(|source| ClusterError::NodeVersion { node: name.clone(), source })?;
        let backend = KindNode { node: name.clone(), docker: docker.clone(), own_disk: false };
        Ok(Node {
            name,
            kubelet: node.labels().get(KUBELET_LABEL).cloned().unwrap_or_default(),
            version,
            cgroup,
            client: client.clone(),
            backend: NodeBackend::Kind(backend),
        })
    };
    listed.into_iter().map(worker).collect()
}

/// Finds the workers with file systems of their own.
pub(super) async fn find_own_disks(docker: &Docker, workers: &mut [Node]) {
    let find = async |worker: &mut Node| {
        if let NodeBackend::Kind(kind) = &mut worker.backend {
            kind.own_disk = has_own_disk(docker, &worker.name).await;
        }
    };
    join_all(workers.iter_mut().map(find)).await;
}

#[cfg(test)]
mod tests {
    use evictlab_rules::KubeletVersion;

    use super::*;

    fn kubelet(label: &str, binary: Option<&str>) -> Kubelet {
        let version: KubeletVersion = label[..8].parse().unwrap();
        Kubelet {
            label: label.to_owned(),
            version: version.clone(),
            image: "kindest/node".to_owned(),
            image_version: version,
            binary: binary.map(Into::into),
        }
    }

    fn assign_sorted(workers: &[&str], kubelets: &[Kubelet]) -> Result<Vec<(String, String)>, Unassigned> {
        assign(workers, kubelets).map(|assigned| assigned.into_iter().collect())
    }

    #[test]
    fn rebuilt_binaries_get_the_worker_of_the_previous_build() {
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        let (old, new) = (kubelet("v1.31.14", None), kubelet("v1.31.14-2", Some("./kubelet")));
        let again = kubelet("v1.31.14-dirty", Some("./kubelet"));
        let workers = ["v1.31.14", "v1.31.14-2"];
        let same = [pair("v1.31.14", "v1.31.14"), pair("v1.31.14-2", "v1.31.14-2")];
        assert_eq!(assign_sorted(&workers, &[old.clone(), new]).unwrap(), same);
        let rebuilt = [pair("v1.31.14", "v1.31.14"), pair("v1.31.14-2", "v1.31.14-dirty")];
        assert_eq!(assign_sorted(&workers, &[again.clone(), old.clone()]).unwrap(), rebuilt);
        assert_eq!(
            assign_sorted(&["v1.31.14"], &[old.clone(), again]),
            Err(Unassigned("v1.31.14-dirty".to_owned()))
        );
        let release = kubelet("v1.32.13", None);
        assert_eq!(
            assign_sorted(&workers, &[old, release]),
            Err(Unassigned("v1.32.13".to_owned())),
            "workers of releases are not reassigned"
        );
    }
}
