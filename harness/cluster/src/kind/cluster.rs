//! A kind cluster with its workers: creation, reuse, clean-up.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;

use super::command;
use super::config::KindConfig;
use super::containers::{are_stopped, containers};
use super::heartbeat::{ExaminedOwner, Heartbeat, remove_heartbeat};
use super::node_disk::{has_own_disk, separate_disks};
use super::record::{ClusterRecord, ClusterState, NODE_FILE};
use super::skew::KubeletGroup;
use super::start_watch::StartWatch;
use super::state_dir::StateDir;
use super::workers::{
    Unassigned, all_workers, find_own_disks, install_kubelets, select_workers, verify_versions,
};
use crate::api_client::client_builder;
use crate::docker::{Container, Docker, DockerError};
use crate::error::{ClusterError, KindError, listed};
use crate::images::ARCHIVE_PATH;
use crate::kubelet::Kubelet;
use crate::kubelet_config;
use crate::node::{Node, NodeBackend, NodeReversal, wait_until_ready};
use crate::node_resources;
use crate::owner::Owner;
use crate::plan::ClusterProgress;
use crate::run_lease::{ServerClock, active_runs};
use crate::workload::{Namespace, NamespaceRecord};

/// Minimum number of nodes of a cluster: the control plane and one worker.
const MIN_NODES: usize = 2;

/// Interval at which the containers are listed while kind creates them.
const NODE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time without any change while the pods of a run are being deleted.
const POD_DELETION_TIMEOUT: Duration = Duration::from_secs(60);

/// Age of a namespace until which its run may not have created its Lease.
const LEASE_CREATION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);

/// Specification of a cluster to create.
#[derive(Clone)]
pub struct NewCluster<'a> {
    /// Record of the cluster, which has been written by [`super::claim`].
    pub record: ClusterRecord,
    /// Kubelets of the workers and image of the control plane.
    pub group: &'a KubeletGroup,
    /// Base of the kind configuration.
    pub base: &'a KindConfig,
    /// Number of workers per kubelet.
    pub nodes: usize,
}

/// A kind cluster with its workers.
pub struct Cluster {
    /// Name of the cluster.
    pub name: String,
    /// API client.
    pub client: Client,
    /// Ready workers.
    pub nodes: Vec<Node>,
    /// Record of the cluster.
    pub record: ClusterRecord,
    /// Kubelet labels of the workers that are not in `nodes`.
    other_kubelets: Vec<String>,
    state: StateDir,
    docker: Docker,
    heartbeat: Option<Heartbeat>,
}

impl Cluster {
    /// Creates a cluster; returns when all nodes are ready and run the requested kubelets.
    ///
    /// # Errors
    /// A step failed or was cancelled. [`super::delete`] removes the remains.
    pub async fn create(
        docker: &Docker,
        state: &StateDir,
        new: NewCluster<'_>,
        cancel: &CancellationToken,
        progress: ClusterProgress<'_>,
    ) -> Result<Self, ClusterError> {
        let NewCluster { record, group, base, nodes } = new;
        let name = record.cluster.clone();
        let cgroup = docker.cgroup_version().await?;
        let config = state.write_kind_config(&name, &base.compose(group, nodes, cgroup)?)?;
        let kubeconfig = state.create_kubeconfig(&name)?;
        let ClusterProgress { step, warning } = progress;
        let mut watch = StartWatch::new(docker, &name);
        let creation = command::create(&record, &config, &kubeconfig, cancel, step);
        let created = tokio::select! {
            created = creation => created,
            never = record_node_ids(docker, state, record.clone()) => match never {},
            never = watch.report(None, warning) => match never {},
        };
        if let Err(error) = created {
            return Err(cluster_error(error, &name).with_problems(watch.problems(None).await));
        }
        store_record_on_nodes(docker, &record).await?;
        let heartbeat = Heartbeat::start(docker, &containers(docker, &name).await?);
        let client = client(state, &name).await?;
        let preparation = async {
            step("waiting for the nodes");
            wait_for_nodes(&client, &mut watch, 1 + group.kubelets.len() * nodes, warning).await?;
            let mut workers = all_workers(docker, &client, &name, cgroup).await?;
            install_kubelets(docker, &client, &group.kubelets, &mut workers, step).await?;
            verify_versions(&workers, &group.kubelets).map(|()| workers)
        };
        let nodes = tokio::select! {
            biased;
            nodes = preparation => nodes?,
            () = cancel.cancelled() => return Err(ClusterError::Interrupted),
        };
        let (other_kubelets, state, docker) = (vec![], state.clone(), docker.clone());
        Ok(Self { name, client, nodes, record, other_kubelets, state, docker, heartbeat })
    }

    /// Opens a kept cluster with the workers of these kubelets; with all workers if `kubelets` is
    /// empty. Resumes nodes that a dead run has paused. `warning` receives the problems of nodes
    /// that are not ready.
    ///
    /// # Errors
    /// The cluster is unknown or stopped, has no worker of a kubelet, or its nodes do not become
    /// ready.
    pub async fn open(
        docker: &Docker,
        state: &StateDir,
        name: &str,
        kubelets: &[Kubelet],
        warning: &dyn Fn(&str),
    ) -> Result<Self, ClusterError> {
        let record = state.read(name).ok_or_else(|| ClusterError::Unknown(name.to_owned()))?;
        let containers = containers(docker, name).await?;
        if are_stopped(&containers) {
            return Err(ClusterError::Stopped(name.to_owned()));
        }
        resume_nodes(docker, &record, &containers).await?;
        let cgroup = docker.cgroup_version().await?;
        let client = client(state, name).await?;
        wait_for_nodes(&client, &mut StartWatch::new(docker, name), MIN_NODES, warning).await?;
        let all = all_workers(docker, &client, name, cgroup).await?;
        let workers: Vec<(String, String)> =
            all.iter().map(|node| (node.name.clone(), node.kubelet.clone())).collect();
        let mut nodes = select_workers(all, kubelets).map_err(|Unassigned(kubelet)| {
            let available = listed(&distinct(workers.iter().map(|(_, label)| label)));
            ClusterError::NoWorker { cluster: name.to_owned(), kubelet, available }
        })?;
        find_own_disks(docker, &mut nodes).await;
        let is_other = |(name, _): &&(String, String)| nodes.iter().all(|node| node.name != *name);
        let other_kubelets = workers.iter().filter(is_other).map(|(_, label)| label.clone()).collect();
        let (name, state, docker) = (name.to_owned(), state.clone(), docker.clone());
        Ok(Self { name, client, nodes, record, other_kubelets, state, docker, heartbeat: None })
    }

    /// Makes a process the owner of the cluster, and removes the leftovers of a dead owner.
    ///
    /// # Errors
    /// Another running process owns the cluster.
    pub async fn take(&mut self, owner: Owner) -> Result<(), ClusterError> {
        let nodes = containers(&self.docker, &self.name).await?;
        let examined = ExaminedOwner::of(&self.docker, &self.record, &nodes).await;
        let unknown = || ClusterError::Unknown(self.name.clone());
        let taken = self.state.change_owner(&self.name, &owner, |record| {
            if examined.state(record) == ClusterState::Live && record.owner != owner {
                Err(ClusterError::InUse { cluster: record.cluster.clone(), pid: record.owner.pid })
            } else {
                Ok(())
            }
        })?;
        let was_owner = self.record.owner == owner;
        self.record = taken.ok_or_else(unknown)?;
        self.heartbeat = Heartbeat::start(&self.docker, &nodes);
        if was_owner {
            return Ok(());
        }
        store_record_on_nodes(&self.docker, &self.record).await?;
        self.clean_up(None).await
    }

    /// Installs the binaries among these kubelets into their workers.
    pub async fn install_kubelets(
        &mut self,
        kubelets: &[Kubelet],
        progress: &dyn Fn(&str),
    ) -> Result<(), ClusterError> {
        if kubelets.iter().all(|kubelet| kubelet.binary.is_none()) {
            return Ok(());
        }
        install_kubelets(&self.docker, &self.client, kubelets, &mut self.nodes, progress).await?;
        let used = self.nodes.iter().map(|node| &node.kubelet);
        let labels = distinct(used.chain(&self.other_kubelets));
        if labels != self.record.kubelets {
            self.record.kubelets = labels;
            self.save_record().await?;
        }
        Ok(())
    }

    /// Gives each worker without a file system of its own one, where the host allows it. `progress`
    /// receives the reason where it does not.
    ///
    /// # Errors
    /// A kubelet does not start again.
    pub async fn separate_disks(&mut self, progress: &dyn Fn(&str)) -> Result<(), ClusterError> {
        let shared = |node: &&mut Node| matches!(&node.backend, NodeBackend::Kind(kind) if !kind.own_disk);
        let mut nodes: Vec<&mut Node> = self.nodes.iter_mut().filter(shared).collect();
        if nodes.is_empty() {
            return Ok(());
        }
        progress("giving each node a file system of its own");
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        if let Err(error) = separate_disks(&self.docker, &names).await {
            progress(&format!(
                "the nodes share the host's disk, so cases with disk pressure take turns: {error}"
            ));
        }
        for node in &mut nodes {
            kubelet_config::wait_until_running(node).await?;
            if let NodeBackend::Kind(kind) = &mut node.backend {
                kind.own_disk = has_own_disk(&self.docker, &node.name).await;
            }
        }
        Ok(())
    }

    /// Deletes the namespaces of a run, or of all runs without a valid Lease, and restores the
    /// nodes.
    ///
    /// # Errors
    /// A namespace cannot be deleted, or a node cannot be restored.
    pub async fn clean_up(&self, run: Option<&str>) -> Result<(), ClusterError> {
        let failed = |error: &dyn std::fmt::Display| ClusterError::CleanUp {
            cluster: self.name.clone(),
            problem: error.to_string(),
        };
        let namespaces = match run {
            Some(_) => Namespace::list(&self.client, run).await.map_err(|error| failed(&error))?,
            None => leftover_namespaces(&self.client).await.map_err(|error| failed(&*error))?,
        };
        // Before the pods: their end needs nodes without a memory limit.
        try_join_all(self.nodes.iter().map(|node| node.revert(NodeReversal::ALL)))
            .await
            .map_err(|error| failed(&error))?;
        try_join_all(namespaces.iter().map(|namespace| namespace.delete(POD_DELETION_TIMEOUT)))
            .await
            .map_err(|error| failed(&error))?;
        let restore = async |node: &Node| {
            // Loading images may have been interrupted.
            let removed = self.docker.run(&node.name, &["rm", "-f", ARCHIVE_PATH]).await;
            removed.map_err(|error| failed(&error))?;
            node_resources::restore_file_systems(node).await.map_err(|error| failed(&error))?;
            kubelet_config::restore(node).await.map_err(|error| failed(&error))
        };
        try_join_all(self.nodes.iter().map(restore)).await.map(drop)
    }

    /// Marks the cluster as kept: it outlives its owner.
    pub async fn keep(&mut self) -> Result<(), ClusterError> {
        self.heartbeat = None;
        remove_heartbeat(&self.docker, &containers(&self.docker, &self.name).await?).await;
        self.record.kept = true;
        self.save_record().await
    }

    /// Path of the kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.kubeconfig(&self.name)
    }

    async fn save_record(&self) -> Result<(), ClusterError> {
        self.state.write(&self.record)?;
        store_record_on_nodes(&self.docker, &self.record).await
    }
}

/// Lists the namespaces of the runs without a valid Lease. A run of the backend `existing` on this
/// cluster has a Lease soon after its namespace; a run of this backend has none, and has lost its
/// cluster by now.
async fn leftover_namespaces(client: &Client) -> Result<Vec<Namespace>, Box<dyn std::error::Error>> {
    // Listed before the Leases: a run that begins later is not in the list.
    let listed = Namespace::list_with_records(client).await?;
    let (active, now) = (active_runs(client).await?, ServerClock::read(client).await?.now());
    let is_left = |record: &NamespaceRecord| !active.contains(&record.run) && !may_begin(record, now);
    Ok(listed.into_iter().filter(|(_, record)| is_left(record)).map(|(namespace, _)| namespace).collect())
}

/// Returns whether a namespace may be that of a run that has no Lease yet.
fn may_begin(record: &NamespaceRecord, now: Timestamp) -> bool {
    match record.owner.as_ref().filter(|owner| owner.is_local()) {
        Some(owner) => owner.is_alive() && *owner != Owner::current(),
        None => record.created.is_some_and(|created| now.duration_since(created) < LEASE_CREATION_TIMEOUT),
    }
}

/// Returns each label once, sorted.
fn distinct<'a>(labels: impl Iterator<Item = &'a String>) -> Vec<String> {
    labels.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// Returns the kubelets of the workers of a kept cluster, with their labels and reported versions.
/// `warning` receives the problems of nodes that are not ready.
pub async fn kubelets_of(
    docker: &Docker,
    state: &StateDir,
    name: &str,
    warning: &dyn Fn(&str),
) -> Result<Vec<Kubelet>, ClusterError> {
    let mut kubelets: Vec<Kubelet> = Vec::new();
    for node in Cluster::open(docker, state, name, &[], warning).await?.nodes {
        if kubelets.iter().all(|kubelet| kubelet.label != node.kubelet) {
            let (label, version) = (node.kubelet, node.version);
            let image_version = version.clone();
            kubelets.push(Kubelet { label, version, image: String::new(), image_version, binary: None });
        }
    }
    Ok(kubelets)
}

/// Resumes the nodes of a cluster that a dead run has paused. Nodes of a live run stay as they are.
pub(super) async fn resume_nodes(
    docker: &Docker,
    record: &ClusterRecord,
    nodes: &[Container],
) -> Result<(), DockerError> {
    let mut paused = nodes.iter().filter(|node| node.paused).peekable();
    if paused.peek().is_none() {
        return Ok(());
    }
    let is_live = ExaminedOwner::of(docker, record, nodes).await.state(record) == ClusterState::Live;
    if is_live && record.owner != Owner::current() {
        return Ok(());
    }
    try_join_all(paused.map(|node| docker.set_paused(&node.id, false))).await.map(drop)
}

/// Waits until `count` nodes are ready. `warning` receives the problems that delay them.
pub(super) async fn wait_for_nodes(
    client: &Client,
    watch: &mut StartWatch<'_>,
    count: usize,
    warning: &dyn Fn(&str),
) -> Result<(), ClusterError> {
    let ready = tokio::select! {
        ready = wait_until_ready(client, count) => ready,
        never = watch.report(Some(client), warning) => match never {},
    };
    let Err(stalled) = ready else { return Ok(()) };
    let error = ClusterError::NotReady { cluster: watch.cluster().to_owned(), stalled };
    Err(error.with_problems(watch.problems(Some(client)).await))
}

/// Creates a client from the kubeconfig that kind wrote.
pub(super) async fn client(state: &StateDir, name: &str) -> Result<Client, ClusterError> {
    let path = state.kubeconfig(name);
    let failed = |error: &dyn Error| {
        let (cluster, path, problem) = (name.to_owned(), path.clone(), error.to_string());
        ClusterError::Kubeconfig { cluster, path, problem }
    };
    let kubeconfig = Kubeconfig::read_from(&path).map_err(|error| failed(&error))?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let builder = client_builder(config.map_err(|error| failed(&error))?);
    Ok(builder.map_err(|error| failed(&error))?.build())
}

/// Adds the ids of the containers to the state file while kind creates them: nodes without a record
/// would look like those of another cluster if the run ended now.
async fn record_node_ids(docker: &Docker, state: &StateDir, mut record: ClusterRecord) -> Infallible {
    loop {
        tokio::time::sleep(NODE_CHECK_INTERVAL).await;
        let Ok(found) = containers(docker, &record.cluster).await else { continue };
        let ids: Vec<String> = found.into_iter().map(|container| container.id).collect();
        if ids != record.node_ids {
            record.node_ids = ids;
            // The next check tries again.
            if state.write(&record).is_err() {
                record.node_ids.clear();
            }
        }
    }
}

/// Stores the record in every node, so that it can be found without the state directory.
async fn store_record_on_nodes(docker: &Docker, record: &ClusterRecord) -> Result<(), ClusterError> {
    let text = serde_json::to_vec_pretty(record).expect("a record has only texts, numbers and lists");
    for container in containers(docker, &record.cluster).await? {
        docker.write_file(&container.id, NODE_FILE, 0o644, &text).await?;
    }
    Ok(())
}

fn cluster_error(error: KindError, name: &str) -> ClusterError {
    match error {
        KindError::Interrupted => ClusterError::Interrupted,
        KindError::NameTaken => ClusterError::Exists(name.to_owned()),
        other => ClusterError::Kind(other),
    }
}

#[cfg(test)]
mod tests {
    use evictlab_embedded::{ClusterOptions, NodeOptions};
    use k8s_openapi::api::coordination::v1::Lease;
    use k8s_openapi::api::core::v1::Namespace as ApiNamespace;
    use kube::Api;
    use kube::api::PostParams;
    use serde_json::json;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;
    use crate::docker::{ContainerState, FakeDocker};
    use crate::node::KindNode;

    /// Memory limit of a container without one, in bytes.
    const NO_LIMIT: i64 = i64::MAX / 4096 * 4096;

    /// Leftovers of a killed run on a node: a pause, a memory limit and an unused image.
    fn left_by_a_killed_run() -> ContainerState {
        let images = ["localhost/evictlab/unused:1363148800", "registry.k8s.io/pause:3.10"];
        ContainerState {
            paused: true,
            memory: 1_500 << 20,
            images: images.map(str::to_owned).to_vec(),
            ..ContainerState::default()
        }
    }

    /// A kind cluster with the node `a`, whose API is that of a modelled cluster.
    fn cluster_of(docker: &Docker, client: &Client, folder: &std::path::Path) -> Cluster {
        let node = Node {
            name: "a".to_owned(),
            kubelet: "v1.32.13".to_owned(),
            version: "v1.32.13".parse().unwrap(),
            cgroup: evictlab_rules::CgroupVersion::V2,
            client: client.clone(),
            backend: NodeBackend::Kind(KindNode {
                node: "a".to_owned(),
                docker: docker.clone(),
                own_disk: false,
            }),
        };
        Cluster {
            name: "lab".to_owned(),
            client: client.clone(),
            nodes: vec![node],
            record: ClusterRecord::new("daemon", "lab", "run", Owner::current(), vec![]),
            other_kubelets: vec![],
            state: StateDir::at(folder).unwrap(),
            docker: docker.clone(),
            heartbeat: None,
        }
    }

    fn modelled_cluster() -> (Client, AbortOnDropHandle<()>) {
        let node = NodeOptions::new("a".to_owned(), "v1.32.13".parse().unwrap());
        let past = Timestamp::now() - SignedDuration::from_secs(600);
        let cluster = evictlab_embedded::Cluster::new(ClusterOptions::new(0, past, vec![node])).unwrap();
        let client = Client::new(cluster.router(), "default");
        (client, AbortOnDropHandle::new(tokio::spawn(async move { cluster.drive().await })))
    }

    #[tokio::test]
    async fn a_clean_up_reverts_the_changes_of_a_killed_run() {
        let (client, _driver) = modelled_cluster();
        let daemon = FakeDocker::start(left_by_a_killed_run());
        let folder = tempfile::tempdir().unwrap();
        let cluster = cluster_of(&daemon.docker(), &client, folder.path());
        let node = &cluster.nodes[0];
        let taint = json!({"key": "evictlab.dev/taint", "effect": "NoSchedule"});
        node.taint(&serde_json::from_value(taint).unwrap()).await.unwrap();
        node.advertise(json!({"evictlab.dev/gpu": "2"}).as_object().unwrap()).await.unwrap();
        node.cordon(true).await.unwrap();

        cluster.clean_up(None).await.unwrap();
        {
            let state = daemon.state.lock().unwrap();
            assert!(!state.paused);
            assert_eq!(state.memory, NO_LIMIT);
            let is_run = |part: &str| state.commands.iter().any(|command| command.contains(part));
            assert!(is_run("rm -f /etc/kubernetes/manifests/evictlab-*.yaml"), "{:?}", state.commands);
            assert!(is_run("images rm --sync localhost/evictlab/unused:1363148800"), "{:?}", state.commands);
            assert!(!is_run("rm --sync registry"), "{:?}", state.commands);
        }
        let object = node.object().await.unwrap();
        let (spec, status) = (object.spec.unwrap(), object.status.unwrap());
        assert_eq!(spec.unschedulable, None);
        let mut taints = spec.taints.iter().flatten();
        assert!(!taints.any(|taint| taint.key.starts_with("evictlab.dev/")));
        assert!(!status.capacity.unwrap().contains_key("evictlab.dev/gpu"));
    }

    #[tokio::test]
    async fn a_reversal_that_fails_does_not_prevent_the_others() {
        let (client, _driver) = modelled_cluster();
        let daemon = FakeDocker::start(ContainerState { cannot_resume: true, ..left_by_a_killed_run() });
        let folder = tempfile::tempdir().unwrap();
        let cluster = cluster_of(&daemon.docker(), &client, folder.path());
        let error = cluster.nodes[0].revert(NodeReversal::ALL).await.unwrap_err().to_string();
        assert!(error.contains("resume a"), "{error}");
        let state = daemon.state.lock().unwrap();
        assert_eq!(state.memory, NO_LIMIT);
        assert!(state.commands.iter().any(|command| command.contains("images rm")), "{:?}", state.commands);
    }

    #[tokio::test]
    async fn nodes_that_a_dead_run_has_paused_are_resumed() {
        let node = Container {
            id: "a".to_owned(),
            name: "a".to_owned(),
            labels: std::collections::HashMap::new(),
            running: true,
            paused: true,
            created: None,
        };
        let elsewhere = Owner { host: "another".to_owned(), ..Owner::current() };
        for (kept, remains_paused) in [(true, false), (false, true)] {
            let daemon = FakeDocker::start(left_by_a_killed_run());
            let record = ClusterRecord::new("daemon", "lab", "run", elsewhere.clone(), vec![]);
            // Without a heartbeat, the owner of a kept cluster is dead.
            let record = ClusterRecord { kept, ..record };
            resume_nodes(&daemon.docker(), &record, std::slice::from_ref(&node)).await.unwrap();
            assert_eq!(daemon.state.lock().unwrap().paused, remains_paused, "kept: {kept}");
        }
    }

    /// Creates the namespace of a run, with its Lease if it has one.
    async fn create_run(client: &Client, run: &str, renewed: Option<Timestamp>) {
        let owner = serde_json::to_string(&Owner { host: "another".to_owned(), ..Owner::current() }).unwrap();
        let labels = json!({"evictlab.dev/run": run, "evictlab.dev/lease": "true"});
        let metadata = json!({"name": format!("evictlab-{run}"), "labels": labels});
        let namespaces: Api<ApiNamespace> = Api::all(client.clone());
        let namespace = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        let Some(renewed) = renewed else { return };
        let leases: Api<Lease> = Api::namespaced(client.clone(), &format!("evictlab-{run}"));
        let renewed = k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(renewed);
        let annotations = json!({"evictlab.dev/owner": owner});
        let lease = json!({
            "metadata": {"name": "evictlab", "labels": labels, "annotations": annotations},
            "spec": {"holderIdentity": run, "renewTime": renewed},
        });
        leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
    }

    /// A user may run cases with the kubeconfig of a kept cluster.
    #[tokio::test(start_paused = true)]
    async fn a_clean_up_spares_runs_with_a_lease() {
        let node = NodeOptions::new("a".to_owned(), "v1.32.13".parse().unwrap());
        let now = Timestamp::now();
        let past = now - SignedDuration::from_secs(600);
        let cluster = evictlab_embedded::Cluster::new(ClusterOptions::new(0, past, vec![node])).unwrap();
        let client = Client::new(cluster.router(), "default");
        let _driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.drive().await }));
        create_run(&client, "active", Some(now)).await;
        create_run(&client, "expired", Some(past)).await;
        create_run(&client, "of-the-cluster", None).await;
        tokio::time::sleep(Duration::from_secs(590)).await;
        // A run that has no Lease yet.
        create_run(&client, "new", None).await;
        let found = leftover_namespaces(&client).await.unwrap();
        let mut names: Vec<String> = found.into_iter().map(|namespace| namespace.name).collect();
        names.sort();
        assert_eq!(names, ["evictlab-expired", "evictlab-of-the-cluster"]);
    }
}
