//! The workers of a cluster until each runs the kubelet that was asked for.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::Docker;
use super::config::{KUBELET_LABEL, label_value};
use super::machine::KindMachine;
use crate::cluster::ready::{PATIENCE, is_ready};
use crate::cluster::{ClusterError, Kubelet, Node};
use crate::wait::{self, Probe};

fn reported(node: &ApiNode) -> Option<&str> {
    Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.as_str())
}

/// Puts a binary in the place of the kubelet on the workers made for it, and waits until each reports its version.
pub async fn put_in(docker: &Docker, client: &Client, kubelet: &Kubelet) -> Result<(), ClusterError> {
    let Some(path) = &kubelet.binary else { return Ok(()) };
    let bytes = std::fs::read(path).map_err(|source| ClusterError::Binary { path: path.clone(), source })?;
    let nodes: Api<ApiNode> = Api::all(client.clone());
    let made_for = ListParams::default().labels(&format!("{KUBELET_LABEL}={}", label_value(&kubelet.label)));
    let listed = nodes.list(&made_for).await.map_err(|error| ClusterError::Kubeconfig {
        cluster: kubelet.label.clone(),
        problem: error.to_string(),
    })?;
    for node in listed {
        let name = node.name_any();
        // The running file cannot be written over; it can be replaced.
        docker.run(&name, &["systemctl", "stop", "kubelet"]).await?;
        docker.write_file(&name, "/usr/bin/kubelet", 0o755, &bytes).await?;
        docker.run(&name, &["systemctl", "start", "kubelet"]).await?;
        let up =
            wait::until(PATIENCE / 5, Duration::from_millis(250), async || match nodes.get(&name).await {
                Err(error) => Probe::Pending(error.to_string()),
                Ok(node) => match reported(&node) {
                    Some(found) if found == kubelet.version.to_string() && is_ready(&node) => Probe::Done(()),
                    found => Probe::Pending(format!("it reports {}", found.unwrap_or("nothing"))),
                },
            })
            .await;
        if let Err(stalled) = up {
            let log = docker
                .run(&name, &["journalctl", "-u", "kubelet", "-n", "8", "-o", "cat", "--no-pager"])
                .await?;
            return Err(ClusterError::BinaryDead { binary: path.clone(), node: name, stalled, log });
        }
    }
    Ok(())
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
