//! The backend of an existing cluster: nodes that a run uses without changing them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evictlab_report::text::{count_noun, first_of};
use evictlab_rules::{KubeletVersion, VersionError};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, ResourceExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::access::ClusterAccess;
use super::client::ClusterClient;
use super::gc::{delete_namespaces, list_leftovers};
use super::nodes::{NodeFilter, nodes_by_boot_id};
use super::permissions::RUN_PERMISSIONS;
use crate::error::{ClusterError, ExistingError};
use crate::images::CANARY_IMAGE;
use crate::kubelet::Kubelet;
use crate::node::{ExistingNode, ExternalNode, Node, NodeBackend, names_of_other_pods};
use crate::plan::{ClusterPlan, TeardownOutcome};
use crate::probe::{ProbeError, ProbePods, probe};
use crate::run_lease::RunLease;
use crate::workload::{Namespace, NamespacePurpose};

/// Maximum number of nodes in a message.
const MAX_NAMES: usize = 20;
/// Maximum number of pods at a time that probe nodes or pull images.
const MAX_PARALLEL_PODS: usize = 250;
/// Maximum number of nodes of a version without a selector.
const NODES_PER_VERSION: usize = 4;

/// Time for which a failed deletion of the run's namespaces is tried again.
const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval of the attempts.
const TEARDOWN_INTERVAL: Duration = Duration::from_secs(3);

/// Reason that an existing cluster is kept.
const KEEP_REASON: &str = "it existed before";

/// Options of an existing cluster.
#[derive(Clone, Debug)]
pub struct ExistingOptions {
    /// Kubeconfig and context.
    pub access: ClusterAccess,
    /// Label selector of the nodes; `None` for some of the nodes that are not dedicated to a
    /// purpose.
    pub node_selector: Option<String>,
    /// Permissions on the nodes.
    pub permissions: NodePermissions,
    /// Maximum memory or disk of a node that a case may consume, in bytes.
    pub max_pressure_bytes: u64,
    /// Maximum number of nodes under pressure at a time.
    pub max_nodes_under_pressure: usize,
    /// Maximum number of nodes of each version that the run holds at a time; others are left to
    /// other runs. `None` for all that it selects.
    pub nodes_per_version: Option<usize>,
}

/// Permissions of a run on the nodes of an existing cluster, given for each run.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodePermissions {
    /// True if selected and tainted nodes may come under pressure.
    pub disruption: bool,
    /// True if selected nodes may come under pressure although pods of others run on them.
    pub other_pods: bool,
    /// True if selected control plane nodes are used.
    pub control_planes: bool,
    /// True if pods may have privileges beyond the Pod Security Standard `baseline`.
    pub privileged: bool,
}

/// A node that the run uses.
struct SelectedNode {
    name: String,
    version: KubeletVersion,
    external: ExternalNode,
}

/// The Lease of the run with the nodes that it holds.
struct HeldLease {
    lease: Arc<RunLease>,
    nodes: BTreeSet<String>,
}

/// Backend of an existing cluster.
pub struct ExistingBackend {
    run: String,
    cluster: ClusterClient,
    selected: Vec<SelectedNode>,
    /// Other nodes, each with the reason that it is not used.
    excluded: Vec<String>,
    pub(crate) one_host: bool,
    pub(crate) max_nodes_under_pressure: usize,
    nodes_per_version: Option<usize>,
    probe_image: String,
    pub(crate) plans: Vec<ClusterPlan>,
}

impl ExistingBackend {
    /// Connects to the cluster, checks permissions, and selects nodes. Creates nothing. `image`
    /// returns the full name of a case image.
    pub async fn connect(
        run: &str,
        options: &ExistingOptions,
        image: impl Fn(&str) -> String,
    ) -> Result<Self, ExistingError> {
        let cluster = options.access.connect().await?;
        let matching = cluster.nodes(options.node_selector.as_deref()).await?;
        let all = match options.node_selector {
            Some(_) => cluster.nodes(None).await?,
            None => matching.clone(),
        };
        cluster.permits(&RUN_PERMISSIONS).await?;
        let occupants = Occupants {
            pods: pods_of_others(&cluster, options.permissions.disruption).await?,
            api_servers: cluster.api_servers().await?,
        };
        let (mut selected, excluded) = select(options, &matching, &occupants);
        if selected.is_empty() {
            return Err(no_nodes(options, cluster.name, &first_of(&excluded, MAX_NAMES)));
        }
        let one_host = set_shared_kernel_nodes(&mut selected, &all);
        let kubelets = kubelets(&selected);
        let plans = vec![ClusterPlan { name: cluster.name.clone(), kubelets, reused: true }];
        let probe_image = image(CANARY_IMAGE);
        Ok(Self {
            run: run.to_owned(),
            cluster,
            selected,
            excluded,
            one_host,
            max_nodes_under_pressure: options.max_nodes_under_pressure,
            nodes_per_version: options.nodes_per_version,
            probe_image,
            plans,
        })
    }

    pub(crate) fn node_names(&self, kubelet: &str) -> Vec<String> {
        let of_kubelet = self.selected.iter().filter(|node| node.version.to_string() == kubelet);
        of_kubelet.map(|node| node.name.clone()).collect()
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

    /// Creates the namespace and the Lease of the run, holds its nodes, and probes each of them
    /// from a pod. Nodes that cannot be probed are not used, unless no node of a version remains.
    async fn prepare(&self, step: &dyn Fn(&str)) -> Result<ExistingHandle, ExistingError> {
        self.report(step).await;
        let ClusterClient { name, client, .. } = &self.cluster;
        let guards = self.selected.first().map(|node| node.external.guards()).unwrap_or_default();
        let pods = Arc::new(ProbePods::create(client, &self.run, NamespacePurpose::Lease, guards).await?);
        let lease = Arc::new(self.hold_nodes(&pods, step).await?);
        step("reading the cgroup versions of the nodes");
        let held = self.selected.iter().filter(|selected| lease.nodes.contains(&selected.name));
        let probed = held.map(async |selected| (selected, self.probe(selected, &pods, &lease.lease).await));
        let probed: Vec<_> = stream::iter(probed).buffered(MAX_PARALLEL_PODS).collect().await;
        let (mut nodes, mut backends) = (Vec::new(), Vec::new());
        let mut failures = Vec::new();
        for (selected, node) in probed {
            match node {
                Ok((node, backend)) => {
                    nodes.push(node);
                    backends.push(backend);
                }
                Err(error) => {
                    step(&format!("{} is not used: {error}", selected.name));
                    failures.push((&selected.version, error));
                }
            }
        }
        let probed: Vec<&KubeletVersion> = nodes.iter().map(|node| &node.version).collect();
        if let Some(error) = failure_of_missing_version(&probed, failures) {
            return Err(error.into());
        }
        Ok(ExistingHandle {
            nodes,
            backends,
            pods,
            lease: lease.lease.clone(),
            cluster: name.clone(),
            run: self.run.clone(),
            probe_image: self.probe_image.clone(),
        })
    }

    /// Holds the selected nodes that no other run holds; waits if no node of a version is free, or
    /// none of those that may come under pressure.
    async fn hold_nodes(&self, pods: &ProbePods, step: &dyn Fn(&str)) -> Result<HeldLease, ExistingError> {
        let failed = |error: kube::Error| self.cluster.error("hold nodes by a Lease", &error);
        let lease = RunLease::create(pods.namespace(), &self.run).await.map_err(failed)?;
        let wanted: BTreeSet<String> = self.selected.iter().map(|node| node.name.clone()).collect();
        let held = lease.hold(&wanted, |free| self.choose_nodes(free), step).await.map_err(failed)?;
        for (node, used) in &held.used_by_others {
            step(&format!("not used: {node}, {used}"));
        }
        Ok(HeldLease { lease: Arc::new(lease), nodes: held.held })
    }

    /// Returns the nodes to hold of free ones; `None` if a version is missing, or its nodes that
    /// may come under pressure: the run would skip the cases that need one.
    fn choose_nodes(&self, free: &BTreeSet<String>) -> Option<BTreeSet<String>> {
        let free: Vec<&SelectedNode> =
            self.selected.iter().filter(|node| free.contains(&node.name)).collect();
        let has_all = best_of_each_version(&self.selected) == best_of_each_version(free.iter().copied());
        has_all.then(|| limit_held(free, self.nodes_per_version, &self.run))
    }

    async fn probe(
        &self,
        selected: &SelectedNode,
        pods: &Arc<ProbePods>,
        lease: &Arc<RunLease>,
    ) -> Result<(Node, Arc<ExistingNode>), ProbeError> {
        let probed = probe(pods, &selected.name, &self.probe_image).await?;
        let backend = Arc::new(ExistingNode {
            node: selected.name.clone(),
            external: ExternalNode { scheduled_pods_preempt: probed.preempts, ..selected.external.clone() },
            pods: pods.clone(),
            lease: lease.clone(),
            image: self.probe_image.clone(),
            unavailable: Mutex::default(),
        });
        let node = Node {
            name: selected.name.clone(),
            kubelet: selected.version.to_string(),
            version: selected.version.clone(),
            cgroup: probed.cgroup,
            client: self.cluster.client.clone(),
            backend: NodeBackend::Existing(backend.clone()),
        };
        Ok((node, backend))
    }

    /// Reports the selected nodes, the excluded nodes, and other runs in the cluster.
    async fn report(&self, step: &dyn Fn(&str)) {
        let names: Vec<String> = self.selected.iter().map(|selected| selected.name.clone()).collect();
        step(&format!(
            "{} at {}: {}",
            count_noun(names.len(), "node"),
            self.cluster.server,
            first_of(&names, MAX_NAMES)
        ));
        if !self.excluded.is_empty() {
            step(&format!("not used: {}", first_of(&self.excluded, MAX_NAMES)));
        }
        // A run does not depend on them, and does not end because they cannot be listed.
        let others = list_leftovers(&self.cluster).await.unwrap_or_else(|error| {
            step(&format!("other runs are not known: {error}"));
            Vec::new()
        });
        for other in others {
            let namespaces = count_noun(other.namespaces, "namespace");
            step(&match other.left_alone {
                Some(reason) => format!("run {} uses this cluster, too ({namespaces}; {reason})", other.run),
                None => format!(
                    "run {} is dead and left {namespaces}: `evictlab gc --backend existing` removes them",
                    other.run
                ),
            });
        }
    }
}

/// Pods and API servers that a run must not disturb.
#[derive(Default)]
struct Occupants {
    /// Pods that are not of runs.
    pods: Vec<Pod>,
    /// Addresses of the API servers.
    api_servers: BTreeSet<String>,
}

/// Lists the pods that are not of runs: all of them if nodes may come under pressure, otherwise
/// those of Kubernetes, by whose static pods control planes are known.
async fn pods_of_others(cluster: &ClusterClient, disruption: bool) -> Result<Vec<Pod>, ExistingError> {
    let mut pods = Vec::new();
    if !disruption {
        cluster.for_each_pod(Some("kube-system"), |pod| pods.push(needed_fields(pod))).await?;
        return Ok(pods);
    }
    // The Leases of other runs, for which this run may wait, keep their nodes apart.
    let runs = Namespace::list(&cluster.client, None).await?;
    let runs: BTreeSet<String> = runs.into_iter().map(|namespace| namespace.name).collect();
    let is_of_run = |pod: &Pod| pod.metadata.namespace.as_ref().is_some_and(|name| runs.contains(name));
    cluster
        .for_each_pod(None, |pod| {
            if !is_of_run(&pod) {
                pods.push(needed_fields(pod));
            }
        })
        .await?;
    Ok(pods)
}

/// Returns the fields of a pod by which the rules for nodes decide: a large cluster has more than
/// 100,000 pods.
fn needed_fields(pod: Pod) -> Pod {
    let (name, namespace) = (pod.metadata.name, pod.metadata.namespace);
    let owner_references = pod.metadata.owner_references;
    let phase = pod.status.and_then(|status| status.phase);
    Pod {
        metadata: ObjectMeta { name, namespace, owner_references, ..ObjectMeta::default() },
        spec: Some(PodSpec { node_name: pod.spec.and_then(|spec| spec.node_name), ..PodSpec::default() }),
        status: Some(PodStatus { phase, ..PodStatus::default() }),
    }
}

/// Splits nodes into those that the run uses, and the others with the reason.
fn select(
    options: &ExistingOptions,
    nodes: &[ApiNode],
    occupants: &Occupants,
) -> (Vec<SelectedNode>, Vec<String>) {
    let NodePermissions { disruption, other_pods, control_planes, privileged } = options.permissions;
    let is_selected = options.node_selector.is_some();
    let filter = NodeFilter { selected: is_selected, disruption, other_pods, control_planes };
    let mut pods_by_node: HashMap<&str, Vec<&Pod>> = HashMap::new();
    for pod in &occupants.pods {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        pods_by_node.entry(node.unwrap_or_default()).or_default().push(pod);
    }
    let (mut selected, mut excluded) = (Vec::new(), Vec::new());
    for node in nodes {
        let name = node.name_any();
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let version = info.map(|info| parse_version(&info.kubelet_version));
        let on_node = pods_by_node.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        match (filter.exclude_reason(node, on_node, &occupants.api_servers), version) {
            (Some(reason), _) => excluded.push(format!("{name} {reason}")),
            (None, Some(Ok(version))) => {
                let others = names_of_other_pods(on_node.iter().copied(), &name);
                let external = ExternalNode {
                    pressure_forbidden: filter.pressure_forbidden(node, &others),
                    shared_kernel_nodes: Arc::default(),
                    allow_other_pods: is_selected && other_pods,
                    allow_privileged: privileged,
                    max_pressure_bytes: options.max_pressure_bytes,
                    scheduled_pods_preempt: false,
                };
                selected.push(SelectedNode { name, version, external });
            }
            (None, Some(Err(problem))) => excluded.push(format!("{name} has an unknown kubelet ({problem})")),
            (None, None) => excluded.push(format!("{name} does not report its kubelet version")),
        }
    }
    if !is_selected {
        limit_nodes(&mut selected, &mut excluded);
    }
    (selected, excluded)
}

/// Parses the version of a node, which becomes part of names and outputs: its suffix is the text of
/// the builder of the kubelet.
fn parse_version(text: &str) -> Result<KubeletVersion, VersionError> {
    let version: KubeletVersion = text.parse()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-._~".contains(c);
    if version.suffix.chars().all(is_plain) { Ok(version) } else { Err(VersionError(text.to_owned())) }
}

/// Keeps a few nodes of each version, those that may come under pressure first.
fn limit_nodes(selected: &mut Vec<SelectedNode>, excluded: &mut Vec<String>) {
    selected.sort_by_key(|node| node.external.pressure_forbidden.is_some());
    let mut counts: BTreeMap<KubeletVersion, usize> = BTreeMap::new();
    let before = selected.len();
    selected.retain(|node| {
        let count = counts.entry(node.version.clone()).or_default();
        *count += 1;
        *count <= NODES_PER_VERSION
    });
    if selected.len() < before {
        let others = count_noun(before - selected.len(), "other node");
        excluded
            .push(format!("{others} (without --node-selector, {NODES_PER_VERSION} of a version are used)"));
    }
}

/// Returns the versions of nodes, each with whether one of its nodes may come under pressure.
fn best_of_each_version<'a>(
    nodes: impl IntoIterator<Item = &'a SelectedNode>,
) -> BTreeMap<&'a KubeletVersion, bool> {
    let mut versions = BTreeMap::new();
    for node in nodes {
        *versions.entry(&node.version).or_default() |= node.external.pressure_forbidden.is_none();
    }
    versions
}

/// Returns the failure of a node whose version has no other node that could be probed.
fn failure_of_missing_version(
    probed: &[&KubeletVersion],
    failures: Vec<(&KubeletVersion, ProbeError)>,
) -> Option<ProbeError> {
    failures.into_iter().find(|(version, _)| !probed.contains(version)).map(|(_, error)| error)
}

/// Returns the names of at most `limit` nodes of each version, those that may come under pressure
/// first. Runs begin with different nodes, so that they seldom claim the same.
fn limit_held(mut nodes: Vec<&SelectedNode>, limit: Option<usize>, run: &str) -> BTreeSet<String> {
    let first = run.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let length = nodes.len().max(1);
    nodes.rotate_left(first % length);
    nodes.sort_by_key(|node| node.external.pressure_forbidden.is_some());
    let mut counts: BTreeMap<&KubeletVersion, usize> = BTreeMap::new();
    nodes.retain(|node| {
        let count = counts.entry(&node.version).or_default();
        *count += 1;
        limit.is_none_or(|limit| *count <= limit)
    });
    nodes.into_iter().map(|node| node.name.clone()).collect()
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
    let by_boot_id = nodes_by_boot_id(all);
    let mut one_host = false;
    for nodes in by_boot_id.values().filter(|nodes| nodes.len() > 1) {
        let without_pressure = nodes.iter().filter(|name| !may_have_pressure.contains(**name));
        // Hundreds of nodes may share a kernel, and the list.
        let without_pressure: Arc<[String]> = without_pressure.map(|name| (*name).to_owned()).collect();
        for node in selected.iter_mut().filter(|node| nodes.contains(node.name.as_str())) {
            one_host = true;
            // The list does not matter on a node that must not come under pressure itself.
            if node.external.pressure_forbidden.is_none() {
                node.external.shared_kernel_nodes = without_pressure.clone();
            }
        }
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

/// Deletes the namespaces of the run. During an outage of the API server, tries again for minutes.
async fn tear_down(client: &Client, cluster: &str, run: &str) -> TeardownOutcome {
    let began = Instant::now();
    let error = loop {
        match delete_namespaces(client, cluster, run).await {
            Ok(_) => break None,
            Err(error) if began.elapsed() >= TEARDOWN_TIMEOUT => {
                let (cluster, run, problem) = (cluster.to_owned(), run.to_owned(), error.to_string());
                break Some(ExistingError::TearDown { cluster, run, problem });
            }
            Err(_) => tokio::time::sleep(TEARDOWN_INTERVAL).await,
        }
    };
    TeardownOutcome { kept: Some(KEEP_REASON), error: error.map(ClusterError::from) }
}

/// An existing cluster in use by a run.
pub struct ExistingHandle {
    pub(crate) nodes: Vec<Node>,
    backends: Vec<Arc<ExistingNode>>,
    pods: Arc<ProbePods>,
    pub(crate) lease: Arc<RunLease>,
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
            let pulls = self.backends.iter().map(|backend| backend.pull(image, index));
            stream::iter(pulls).buffered(MAX_PARALLEL_PODS).try_collect::<()>().await?;
        }
        Ok(())
    }

    /// Deletes the namespaces of the run.
    pub(crate) async fn end(self) -> TeardownOutcome {
        tear_down(self.pods.namespace().client(), &self.cluster, &self.run).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::PressureForbidden;

    /// An API server without namespaces that answers with an error for some time.
    fn client(code: u16, outage: Duration) -> Client {
        let began = Instant::now();
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| async move {
            let (status, body) = if began.elapsed() < outage {
                (code, r#"{"kind":"Status","status":"Failure","message":"no","reason":"","code":401}"#)
            } else {
                (200, r#"{"kind":"NamespaceList","apiVersion":"v1","metadata":{},"items":[]}"#)
            };
            http::Response::builder().status(status).body(kube::client::Body::from(body.as_bytes().to_vec()))
        });
        Client::new(service, "default")
    }

    fn node(name: &str, version: &str) -> ApiNode {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": name},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"operatingSystem": "linux", "architecture": "", "bootID": name, "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": version, "machineID": "", "osImage": "",
                    "systemUUID": ""},
            },
        }))
        .unwrap()
    }

    #[test]
    fn without_a_selector_four_nodes_of_a_version_are_used() {
        let options = |node_selector: Option<&str>| ExistingOptions {
            access: ClusterAccess::default(),
            node_selector: node_selector.map(str::to_owned),
            permissions: NodePermissions::default(),
            max_pressure_bytes: 0,
            max_nodes_under_pressure: 1,
            nodes_per_version: None,
        };
        let mut nodes: Vec<ApiNode> = (0..1000).map(|nth| node(&format!("a{nth}"), "v1.32.13")).collect();
        nodes.extend([node("b", "v1.31.14"), node("c", "v1.32.0-\u{1b}[2J")]);
        let (selected, excluded) = select(&options(None), &nodes, &Occupants::default());
        assert_eq!(selected.len(), 5);
        assert!(excluded.iter().any(|reason| reason.starts_with("996 other nodes (")), "{excluded:?}");
        assert!(excluded.iter().any(|reason| reason.starts_with("c has an unknown kubelet")), "{excluded:?}");
        assert_eq!(select(&options(Some("pool=a")), &nodes, &Occupants::default()).0.len(), 1001);
    }

    #[test]
    fn a_run_holds_some_nodes_of_each_version() {
        let options = ExistingOptions {
            access: ClusterAccess::default(),
            node_selector: Some("pool=a".to_owned()),
            permissions: NodePermissions::default(),
            max_pressure_bytes: 0,
            max_nodes_under_pressure: 1,
            nodes_per_version: None,
        };
        let nodes: Vec<ApiNode> = (0..10)
            .map(|nth| node(&format!("n{nth}"), if nth < 5 { "v1.32.13" } else { "v1.33.1" }))
            .collect();
        let selected = select(&options, &nodes, &Occupants::default()).0;
        let held = |limit, run: &str| limit_held(selected.iter().collect(), limit, run);
        assert_eq!(held(None, "a").len(), 10);
        assert_eq!(held(Some(2), "a").len(), 4);
        let one = held(Some(1), "a");
        let is_old = |name: &&String| name.as_str() < "n5";
        assert_eq!((one.len(), one.iter().filter(is_old).count()), (2, 1), "{one:?}");
        let first: BTreeSet<BTreeSet<String>> =
            "abcdefgh".chars().map(|run| held(Some(1), &run.to_string())).collect();
        assert!(first.len() > 1, "runs begin with different nodes");
    }

    /// Nodes of one version, of which the last ones may come under pressure.
    fn dedicated(nodes: usize, permitted: usize) -> Vec<SelectedNode> {
        let node = |nth: usize| SelectedNode {
            name: format!("n{nth}"),
            version: "v1.32.13".parse().unwrap(),
            external: ExternalNode {
                pressure_forbidden: (nth < nodes - permitted).then_some(PressureForbidden::NotAllowed),
                shared_kernel_nodes: Arc::default(),
                allow_other_pods: false,
                allow_privileged: false,
                max_pressure_bytes: 0,
                scheduled_pods_preempt: false,
            },
        };
        (0..nodes).map(node).collect()
    }

    #[test]
    fn a_run_holds_nodes_that_may_come_under_pressure_first() {
        let nodes = dedicated(4, 1);
        for run in "abcdefgh".chars() {
            let held = limit_held(nodes.iter().collect(), Some(1), &run.to_string());
            assert_eq!(held, BTreeSet::from(["n3".to_owned()]), "{run}");
        }
    }

    #[test]
    fn the_failure_of_a_missing_version_is_returned() {
        let [old, new] = ["v1.31.14", "v1.32.13"].map(|text| text.parse::<KubeletVersion>().unwrap());
        let failure = |node: &str| ProbeError::Pod {
            node: node.to_owned(),
            name: "probe".to_owned(),
            reason: "it is evicted".to_owned(),
        };
        let missing = |probed: &[&KubeletVersion]| {
            let failures = vec![(&old, failure("a")), (&new, failure("b"))];
            failure_of_missing_version(probed, failures).map(|error| error.to_string())
        };
        assert_eq!(missing(&[&old, &new]), None, "each version has another node");
        assert!(missing(&[&new]).unwrap().contains("node a"), "the failure of b is that of another version");
    }

    #[test]
    fn a_version_is_free_if_its_nodes_for_pressure_are() {
        let best = |nodes: &[SelectedNode]| {
            let best = best_of_each_version(nodes);
            best.into_values().collect::<Vec<_>>()
        };
        let mut nodes = dedicated(4, 1);
        assert_eq!(best(&nodes), [true]);
        nodes.pop();
        assert_eq!(best(&nodes), [false]);
        assert_eq!(best(&[]), [false; 0]);
    }

    /// A client of a cluster whose API server does not answer for a minute from the nth request on.
    fn with_outage(cluster: &evictlab_embedded::Cluster, nth: usize, code: Option<u16>) -> Client {
        let requests = std::sync::atomic::AtomicUsize::new(0);
        let began = std::sync::OnceLock::new();
        let is_unavailable = Arc::new(move || {
            let is_first = requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < nth;
            !is_first && began.get_or_init(Instant::now).elapsed() < Duration::from_secs(60)
        });
        let server = Client::new(cluster.router(), "default");
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (server, is_unavailable) = (server.clone(), is_unavailable.clone());
            async move {
                if !is_unavailable() {
                    return server.send(request).await;
                }
                let Some(code) = code else {
                    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
                    return Err(kube::Error::Service(refused.into()));
                };
                let status =
                    serde_json::json!({"kind": "Status", "status": "Failure", "message": "no", "code": code});
                let body = kube::client::Body::from(status.to_string().into_bytes());
                http::Response::builder().status(code).body(body).map_err(kube::Error::HttpError)
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn the_preparation_of_a_run_outlives_an_outage_of_a_minute() {
        let node = evictlab_embedded::NodeOptions::new("n".to_owned(), "v1.32.13".parse().unwrap());
        let options = evictlab_embedded::ClusterOptions::new(0, jiff::Timestamp::UNIX_EPOCH, vec![node]);
        let cluster = Arc::new(evictlab_embedded::Cluster::new(options).unwrap());
        let live = cluster.clone();
        let _driver =
            tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move { live.drive().await }));
        crate::node::wait_until_ready(&Client::new(cluster.router(), "default"), 1).await.unwrap();
        for (nth, code) in (0..40).flat_map(|nth| [(nth, Some(503)), (nth, None)]) {
            let client = with_outage(&cluster, nth, code);
            let external = dedicated(1, 1).remove(0).external;
            let version = "v1.32.13".parse().unwrap();
            let backend = ExistingBackend {
                run: format!("run{nth}"),
                cluster: ClusterClient { name: "c".to_owned(), server: String::new(), client },
                selected: vec![SelectedNode { name: "n".to_owned(), version, external }],
                excluded: Vec::new(),
                one_host: false,
                max_nodes_under_pressure: 1,
                nodes_per_version: None,
                probe_image: "agnhost:2.52".to_owned(),
                plans: Vec::new(),
            };
            let images = ["busybox:1.36".to_owned()];
            let opened = backend.open(&images, &CancellationToken::new(), &|_| {}).await;
            let handle = opened.unwrap_or_else(|error| panic!("{code:?} from request {nth} on: {error}"));
            assert_eq!(handle.nodes.len(), 1);
            assert!(handle.end().await.error.is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clean_up_outlives_an_outage_or_names_the_command() {
        for (code, seconds, is_failure) in [(503, 60, false), (401, 240, false), (401, 100_000, true)] {
            let client = client(code, Duration::from_secs(seconds));
            let error = tear_down(&client, "staging", "7f3a").await.error.map(|error| error.to_string());
            assert_eq!(error.is_some(), is_failure, "{code} for {seconds} s: {error:?}");
            let command = "evictlab gc --backend existing";
            assert!(error.is_none_or(|error| error.contains(command) && error.contains("7f3a")), "{code}");
        }
    }
}
