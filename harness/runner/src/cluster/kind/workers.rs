//! The workers of a cluster until each runs the kubelet that was asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::Docker;
use super::config::{KUBELET_LABEL, label_value};
use super::machine::KindMachine;
use crate::cluster::ready::{PATIENCE, is_ready};
use crate::cluster::{ClusterError, Kubelet, Node};
use crate::wait::{self, Probe, Stalled};

fn reported(node: &ApiNode) -> Option<&str> {
    Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.as_str())
}

/// Puts the binaries among these kubelets into those of the workers that are called by their labels. `progress` gets a line a binary.
pub async fn put_in(
    docker: &Docker,
    client: &Client,
    kubelets: &[Kubelet],
    workers: &[Node],
    mut progress: impl FnMut(&str),
) -> Result<(), ClusterError> {
    for kubelet in kubelets {
        let Some(path) = &kubelet.binary else { continue };
        progress(&format!("putting in the kubelet {}", kubelet.label));
        let bytes =
            std::fs::read(path).map_err(|source| ClusterError::Binary { path: path.clone(), source })?;
        let label = label_value(&kubelet.label);
        for worker in workers.iter().filter(|worker| worker.kubelet == label) {
            replace(docker, &worker.name, &bytes).await?;
            if let Err(stalled) = answers(client, &worker.name, kubelet).await {
                let (binary, node) = (path.clone(), worker.name.clone());
                let log = worker.machine.last_words().await.unwrap_or_else(|error| error.to_string());
                return Err(ClusterError::BinaryDead { binary, node, stalled, log });
            }
            named_after(client, &worker.name, &label).await?;
        }
    }
    Ok(())
}

/// Puts a binary in the place of a worker's kubelet, and starts it.
async fn replace(docker: &Docker, worker: &str, binary: &[u8]) -> Result<(), ClusterError> {
    // The running file cannot be written over; it can be replaced.
    docker.run(worker, &["systemctl", "stop", "kubelet"]).await?;
    docker.write_file(worker, "/usr/bin/kubelet", 0o755, binary).await?;
    docker.run(worker, &["systemctl", "start", "kubelet"]).await?;
    Ok(())
}

/// Waits until a kubelet that was just put in answers and reports its version. The one before has ended: whoever answers is the new one.
async fn answers(client: &Client, worker: &str, kubelet: &Kubelet) -> Result<(), Stalled> {
    let nodes: Api<ApiNode> = Api::all(client.clone());
    let health = format!("/api/v1/nodes/{worker}/proxy/healthz");
    wait::until(PATIENCE / 5, Duration::from_millis(250), async || {
        if let Err(error) = client.request_text(Request::get(&health).body(vec![]).unwrap_or_default()).await
        {
            return Probe::Pending(format!("it does not answer: {error}"));
        }
        match nodes.get(worker).await {
            Err(error) => Probe::Pending(error.to_string()),
            Ok(node) => match reported(&node) {
                Some(found) if found == kubelet.version.to_string() && is_ready(&node) => Probe::Done(()),
                found => Probe::Pending(format!("it reports {}", found.unwrap_or("nothing"))),
            },
        }
    })
    .await
}

/// Labels a worker as made for a kubelet.
async fn named_after(client: &Client, worker: &str, label: &str) -> Result<(), ClusterError> {
    let nodes: Api<ApiNode> = Api::all(client.clone());
    let labels = Patch::Merge(json!({"metadata": {"labels": {KUBELET_LABEL: label}}}));
    let patched = nodes.patch(worker, &PatchParams::default(), &labels).await;
    patched
        .map(drop)
        .map_err(|error| ClusterError::Kubeconfig { cluster: worker.to_owned(), problem: error.to_string() })
}

/// Of the workers of a kept cluster those for these kubelets, each called by the label of its kubelet; all where none is asked for. `Err`: the label of a
/// kubelet that there is no worker for.
pub fn chosen(all: Vec<Node>, kubelets: &[Kubelet]) -> Result<Vec<Node>, String> {
    if kubelets.is_empty() {
        return Ok(all);
    }
    let labels: Vec<&str> = all.iter().map(|node| node.kubelet.as_str()).collect();
    let assigned = assigned(&labels, kubelets)?;
    let named = |node: Node| Some(Node { kubelet: assigned.get(&node.kubelet)?.clone(), ..node });
    Ok(all.into_iter().filter_map(named).collect())
}

/// Which label of a worker is taken for which kubelet's. A binary that no worker was made for, such as one that was built again, takes those of
/// a kubelet that is not asked for.
fn assigned(workers: &[&str], kubelets: &[Kubelet]) -> Result<BTreeMap<String, String>, String> {
    let wanted: Vec<String> = kubelets.iter().map(|kubelet| label_value(&kubelet.label)).collect();
    let mut assigned: BTreeMap<String, String> = BTreeMap::new();
    let (there, missing): (Vec<_>, Vec<_>) =
        kubelets.iter().zip(&wanted).partition(|(_, label)| workers.contains(&label.as_str()));
    assigned.extend(there.into_iter().map(|(_, label)| (label.clone(), label.clone())));
    for (kubelet, label) in missing {
        let spare = workers.iter().find(|worker| !assigned.contains_key(**worker));
        match spare.filter(|_| kubelet.binary.is_some()) {
            Some(spare) => assigned.insert((*spare).to_owned(), label.clone()),
            None => return Err(label.clone()),
        };
    }
    Ok(assigned)
}

/// The workers of these kubelets, each proved to be what it was claimed to be.
pub async fn workers(
    docker: &Docker,
    client: &Client,
    kubelets: &[Kubelet],
    cgroup_v1: bool,
) -> Result<Vec<Node>, ClusterError> {
    let nodes = all_workers(docker, client, cgroup_v1).await?;
    for node in &nodes {
        let Some(kubelet) = kubelets.iter().find(|kubelet| label_value(&kubelet.label) == node.kubelet)
        else {
            continue;
        };
        if kubelet.version != node.version {
            return Err(ClusterError::NotAsClaimed {
                node: node.name.clone(),
                found: node.version.to_string(),
                claimed: kubelet.version.clone(),
            });
        }
    }
    Ok(nodes)
}

/// Every worker that was made for a kubelet.
pub async fn all_workers(
    docker: &Docker,
    client: &Client,
    cgroup_v1: bool,
) -> Result<Vec<Node>, ClusterError> {
    let nodes: Api<ApiNode> = Api::all(client.clone());
    let failed =
        |problem: String| ClusterError::Kubeconfig { cluster: "asked for its nodes".to_owned(), problem };
    let listed = nodes
        .list(&ListParams::default().labels(KUBELET_LABEL))
        .await
        .map_err(|error| failed(error.to_string()))?;
    listed
        .into_iter()
        .map(|node| {
            let version =
                reported(&node).unwrap_or_default().parse().map_err(|error| failed(format!("{error}")))?;
            let kubelet = node.labels().get(KUBELET_LABEL).cloned().unwrap_or_default();
            let machine = KindMachine { node: node.name_any(), docker: docker.clone() };
            Ok(Node {
                name: node.name_any(),
                kubelet,
                version,
                cgroup_v1,
                client: client.clone(),
                machine: Arc::new(machine),
            })
        })
        .collect()
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

    fn told(workers: &[&str], kubelets: &[Kubelet]) -> Result<Vec<(String, String)>, String> {
        assigned(workers, kubelets).map(|assigned| assigned.into_iter().collect())
    }

    #[test]
    fn a_binary_that_was_built_again_takes_the_worker_of_the_one_before() {
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        let (old, new) = (kubelet("v1.31.14", None), kubelet("v1.31.14-2", Some("./kubelet")));
        let again = kubelet("v1.31.14-dirty", Some("./kubelet"));
        let made = ["v1.31.14", "v1.31.14-2"];
        let same = [pair("v1.31.14", "v1.31.14"), pair("v1.31.14-2", "v1.31.14-2")];
        assert_eq!(told(&made, &[old.clone(), new]).unwrap(), same);
        let rebuilt = [pair("v1.31.14", "v1.31.14"), pair("v1.31.14-2", "v1.31.14-dirty")];
        assert_eq!(told(&made, &[again.clone(), old.clone()]).unwrap(), rebuilt);
        assert_eq!(told(&["v1.31.14"], &[old.clone(), again]), Err("v1.31.14-dirty".to_owned()));
        let release = kubelet("v1.32.13", None);
        assert_eq!(told(&made, &[old, release]), Err("v1.32.13".to_owned()), "a worker's own kubelet stays");
    }
}
