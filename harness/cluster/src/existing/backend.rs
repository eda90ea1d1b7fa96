//! The backend of an existing cluster: nodes that a run uses without changing them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use evictlab_report::words::count;
use evictlab_rules::KubeletVersion;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod};
use kube::{Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::access::ClusterAccess;
use super::client::ClusterClient;
use super::error::ExistingError;
use super::gc::{delete_namespaces, list_leftovers};
use super::nodes::{NodeFilter, other_pods, shared_kernel_nodes};
use super::permissions::RUN_PERMISSIONS;
use crate::error::ClusterError;
use crate::images::CANARY_IMAGE;
use crate::kubelet::Kubelet;
use crate::node::{ExistingNode, ExternalNode, Node, NodeBackend};
use crate::plan::{ClusterPlan, TeardownOutcome};
use crate::probe::probe;
use crate::workload::Namespace;

/// Reason that an existing cluster is kept.
const KEPT: &str = "it existed before";

/// Options of an existing cluster.
#[derive(Clone, Debug)]
pub struct ExistingOptions {
    /// Kubeconfig and context.
    pub access: ClusterAccess,
    /// Label selector of the nodes; `None` for all nodes that are not dedicated to a purpose.
    pub node_selector: Option<String>,
    /// True if selected and tainted nodes may come under pressure.
    pub allow_disruption: bool,
    /// Maximum memory or disk of a node that a case may consume, in bytes.
    pub max_pressure_bytes: u64,
}

/// A node that the run uses.
struct SelectedNode {
    name: String,
    version: KubeletVersion,
    external: ExternalNode,
}

/// Backend of an existing cluster.
pub struct ExistingBackend {
    run: String,
    cluster: ClusterClient,
    selected: Vec<SelectedNode>,
    /// Other nodes, each with the reason that it is not used.
    excluded: Vec<String>,
    pub(crate) one_host: bool,
    probe_image: String,
    pub(crate) plans: Vec<ClusterPlan>,
}

impl ExistingBackend {
    /// Connects to the cluster, checks permissions, and selects nodes. Creates nothing. `image`
    /// returns the full name of a case image.
    pub async fn reach(
        run: &str,
        options: &ExistingOptions,
        image: impl Fn(&str) -> String,
    ) -> Result<Self, ExistingError> {
        let cluster = options.access.reach().await?;
        let matching = cluster.nodes(options.node_selector.as_deref()).await?;
        let all = match options.node_selector {
            Some(_) => cluster.nodes(None).await?,
            None => matching.clone(),
        };
        cluster.permits(&RUN_PERMISSIONS).await?;
        let pods = match options.allow_disruption {
            true => cluster.pods().await?,
            false => Vec::new(),
        };
        let (mut selected, excluded) = select(options, &matching, &pods);
        if selected.is_empty() {
            return Err(no_nodes(options, cluster.name, &excluded.join(", ")));
        }
        let one_host = set_shared_kernel_nodes(&mut selected, &all);
        let kubelets = kubelets(&selected);
        let plans = vec![ClusterPlan { name: cluster.name.clone(), kubelets, reused: true }];
        let probe_image = image(CANARY_IMAGE);
        Ok(Self { run: run.to_owned(), cluster, selected, excluded, one_host, probe_image, plans })
    }

    /// Creates the namespace of the run, probes each node, and makes all nodes pull images.
    pub(crate) async fn open(
        &self,
        images: &[String],
        cancel: &CancellationToken,
        step: &dyn Fn(&str),
    ) -> Result<ExistingHandle, ClusterError> {
        let preparation = async {
            let handle = self.prepare(step).await?;
            handle.pull(images, step).await?;
            Ok(handle)
        };
        cancel.run_until_cancelled(preparation).await.unwrap_or(Err(ClusterError::Interrupted))
    }

    /// Deletes the namespaces of the run.
    pub(crate) async fn clear(&self, plan: &ClusterPlan) -> TeardownOutcome {
        tear_down(&self.cluster.client, &plan.name, &self.run).await
    }

    /// Creates the namespace of the run and probes each node from a pod.
    async fn prepare(&self, step: &dyn Fn(&str)) -> Result<ExistingHandle, ExistingError> {
        self.report(step).await?;
        step("reading the cgroup versions of the nodes");
        let ClusterClient { name, client, .. } = &self.cluster;
        let namespace = Arc::new(Namespace::create(client, &self.run, "look").await?);
        let nodes = try_join_all(self.selected.iter().map(async |selected| {
            let probed = probe(&namespace, &selected.name, &self.probe_image).await?;
            let backend = Arc::new(ExistingNode {
                node: selected.name.clone(),
                external: selected.external.clone(),
                namespace: namespace.clone(),
                image: self.probe_image.clone(),
                unavailable: Mutex::default(),
            });
            let node = Node {
                name: selected.name.clone(),
                kubelet: selected.version.to_string(),
                version: selected.version.clone(),
                cgroup_v1: probed.cgroup_v1,
                client: client.clone(),
                backend: NodeBackend::Existing(backend.clone()),
            };
            Ok::<_, ExistingError>((node, backend))
        }));
        let (nodes, backends) = nodes.await?.into_iter().unzip();
        Ok(ExistingHandle {
            nodes,
            backends,
            namespace,
            cluster: name.clone(),
            run: self.run.clone(),
            probe_image: self.probe_image.clone(),
        })
    }

    /// Reports the selected nodes, the excluded nodes, and other runs in the cluster.
    async fn report(&self, step: &dyn Fn(&str)) -> Result<(), ExistingError> {
        let names: Vec<&str> = self.selected.iter().map(|selected| selected.name.as_str()).collect();
        step(&format!("{} at {}: {}", count(names.len(), "node"), self.cluster.server, names.join(", ")));
        if !self.excluded.is_empty() {
            step(&format!("not used: {}", self.excluded.join(", ")));
        }
        for other in list_leftovers(&self.cluster).await? {
            let namespaces = count(other.namespaces, "namespace");
            step(&match other.left_alone {
                Some(reason) => format!("run {} uses this cluster, too ({namespaces}; {reason})", other.run),
                None => format!(
                    "run {} is dead and left {namespaces}: `evictlab gc --backend existing` removes them",
                    other.run
                ),
            });
        }
        Ok(())
    }
}

/// Splits nodes into those that the run uses, and the others with the reason.
fn select(options: &ExistingOptions, nodes: &[ApiNode], pods: &[Pod]) -> (Vec<SelectedNode>, Vec<String>) {
    let filter =
        NodeFilter { selected: options.node_selector.is_some(), disruption: options.allow_disruption };
    let (mut selected, mut excluded) = (Vec::new(), Vec::new());
    for node in nodes {
        let name = node.name_any();
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let version = info.map(|info| info.kubelet_version.parse::<KubeletVersion>());
        match (filter.exclude_reason(node), version) {
            (Some(reason), _) => excluded.push(format!("{name} {reason}")),
            (None, Some(Ok(version))) => {
                let external = ExternalNode {
                    pressure_forbidden: filter.pressure_forbidden(node, &other_pods(pods, &name)),
                    shared_kernel_nodes: Vec::new(),
                    max_pressure_bytes: options.max_pressure_bytes,
                };
                selected.push(SelectedNode { name, version, external });
            }
            (None, Some(Err(error))) => excluded.push(format!("{name} has an unknown kubelet ({error})")),
            (None, None) => excluded.push(format!("{name} does not report its kubelet version")),
        }
    }
    (selected, excluded)
}

fn no_nodes(options: &ExistingOptions, cluster: String, excluded: &str) -> ExistingError {
    match &options.node_selector {
        Some(selector) => ExistingError::Selector {
            selector: selector.clone(),
            problem: format!("no matching node can be used: {excluded}"),
        },
        None => ExistingError::NoNodes { cluster, excluded: excluded.to_owned() },
    }
}

/// Sets the nodes that share a kernel with a selected node and must not come under pressure.
/// Returns whether any selected node shares its kernel.
fn set_shared_kernel_nodes(selected: &mut [SelectedNode], all: &[ApiNode]) -> bool {
    let may_have_pressure: BTreeSet<String> = selected
        .iter()
        .filter(|node| node.external.pressure_forbidden.is_none())
        .map(|node| node.name.clone())
        .collect();
    let mut one_host = false;
    for node in selected {
        let neighbours = shared_kernel_nodes(all, &node.name);
        one_host |= !neighbours.is_empty();
        node.external.shared_kernel_nodes =
            neighbours.into_iter().filter(|name| !may_have_pressure.contains(name)).collect();
    }
    one_host
}

/// Kubelets of the nodes, each version once, newest first.
fn kubelets(selected: &[SelectedNode]) -> Vec<Kubelet> {
    let versions: BTreeSet<&KubeletVersion> = selected.iter().map(|node| &node.version).collect();
    let kubelet = |version: &KubeletVersion| Kubelet {
        label: version.to_string(),
        version: version.clone(),
        image: String::new(),
        image_version: version.clone(),
        binary: None,
    };
    versions.into_iter().rev().map(kubelet).collect()
}

/// Deletes the namespaces of the run.
async fn tear_down(client: &Client, cluster: &str, run: &str) -> TeardownOutcome {
    let deleted = delete_namespaces(client, cluster, run).await;
    TeardownOutcome { kept: Some(KEPT), error: deleted.err().map(ClusterError::from) }
}

/// An existing cluster in use by a run.
pub struct ExistingHandle {
    pub(crate) nodes: Vec<Node>,
    backends: Vec<Arc<ExistingNode>>,
    namespace: Arc<Namespace>,
    cluster: String,
    run: String,
    /// Image of the probe pods, which all nodes have.
    probe_image: String,
}

impl ExistingHandle {
    /// Makes all nodes pull images.
    async fn pull(&self, images: &[String], step: &dyn Fn(&str)) -> Result<(), ExistingError> {
        for (index, image) in images.iter().enumerate().filter(|(_, image)| **image != self.probe_image) {
            step(&format!("pulling {image} on the nodes"));
            try_join_all(self.backends.iter().map(|backend| backend.pull(image, index))).await?;
        }
        Ok(())
    }

    /// Deletes the namespaces of the run.
    pub(crate) async fn end(self) -> TeardownOutcome {
        tear_down(self.namespace.client(), &self.cluster, &self.run).await
    }
}
