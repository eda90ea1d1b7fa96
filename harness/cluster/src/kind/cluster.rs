//! A kind cluster with its workers: creation, reuse, clean-up.

use std::collections::BTreeSet;
use std::convert::Infallible;
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
use super::heartbeat::{Heartbeat, last_heartbeat, remove_heartbeat};
use super::node_disk::{has_own_disk, separate_disks};
use super::record::{ClusterRecord, ClusterState, LastHeartbeat, NODE_FILE};
use super::skew::KubeletGroup;
use super::start_watch::StartWatch;
use super::state_dir::StateDir;
use super::workers::{all_workers, find_own_disks, install_kubelets, select_workers, verify_versions};
use crate::api_client::apply_client_settings;
use crate::docker::Docker;
use crate::error::{ClusterError, KindError};
use crate::file_systems;
use crate::images::ARCHIVE_PATH;
use crate::kubelet::Kubelet;
use crate::kubelet_config;
use crate::node::{Node, NodeBackend, wait_until_ready};
use crate::owner::Owner;
use crate::plan::ClusterProgress;
use crate::run_lease::{ServerClock, active_runs};
use crate::workload::{Namespace, NamespaceRecord};

/// Interval at which the containers are listed while kind creates them.
const NODE_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time without any change while the pods of a run are being deleted.
const POD_DELETION_TIMEOUT: Duration = Duration::from_secs(60);

/// Age of a namespace until which its run may not have created its Lease.
const GUEST_START: SignedDuration = SignedDuration::from_secs(120);

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
        let config = state.kind_config(&name);
        std::fs::write(&config, base.compose(group, nodes, cgroup)?)?;
        let kubeconfig = state.create_kubeconfig(&name)?;
        let ClusterProgress { step, warning } = progress;
        let mut watch = StartWatch::new(docker, &name);
        let creation = command::create(&name, &config, &kubeconfig, cancel, step);
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
            let mut workers = all_workers(docker, &client, cgroup).await?;
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

    /// Opens an existing cluster with the workers of these kubelets; with all workers if `kubelets`
    /// is empty. `warning` receives the problems of nodes that are not ready.
    pub async fn open(
        docker: &Docker,
        state: &StateDir,
        name: &str,
        kubelets: &[Kubelet],
        warning: &dyn Fn(&str),
    ) -> Result<Self, ClusterError> {
        let record = state.read(name).ok_or_else(|| ClusterError::Unknown(name.to_owned()))?;
        if are_stopped(&containers(docker, name).await?) {
            return Err(ClusterError::Stopped(name.to_owned()));
        }
        let cgroup = docker.cgroup_version().await?;
        let client = client(state, name).await?;
        wait_for_nodes(&client, &mut StartWatch::new(docker, name), 2, warning).await?;
        let all = all_workers(docker, &client, cgroup).await?;
        let workers: Vec<(String, String)> =
            all.iter().map(|node| (node.name.clone(), node.kubelet.clone())).collect();
        let mut nodes = select_workers(all, kubelets).map_err(|kubelet| ClusterError::NoWorker {
            cluster: name.to_owned(),
            kubelet,
            available: distinct(workers.iter().map(|(_, label)| label)).join(", "),
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
        let heartbeat = match self.record.owner.is_local() {
            true => LastHeartbeat::None,
            false => last_heartbeat(&self.docker, &nodes).await,
        };
        let examined = self.record.owner.clone();
        let unknown = || ClusterError::Unknown(self.name.clone());
        let taken = self.state.change_owner(&self.name, &owner, |record| {
            let heartbeat = if record.owner == examined { heartbeat } else { LastHeartbeat::None };
            match record.state(heartbeat) == ClusterState::Live && record.owner != owner {
                true => Err(ClusterError::InUse { cluster: record.cluster.clone(), pid: record.owner.pid }),
                false => Ok(()),
            }
        })?;
        self.record = taken.ok_or_else(unknown)?;
        self.heartbeat = Heartbeat::start(&self.docker, &nodes);
        if examined == owner {
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

    /// Deletes the namespaces of a run, or of all runs that are not active guests of the cluster,
    /// and restores the kubelets of the nodes.
    pub async fn clean_up(&self, run: Option<&str>) -> Result<(), ClusterError> {
        let failed = |error: &dyn std::fmt::Display| ClusterError::CleanUp {
            cluster: self.name.clone(),
            problem: error.to_string(),
        };
        let namespaces = match run {
            Some(_) => Namespace::list(&self.client, run).await.map_err(|error| failed(&error))?,
            None => leftover_namespaces(&self.client).await.map_err(|error| failed(&*error))?,
        };
        try_join_all(namespaces.iter().map(|namespace| namespace.delete(POD_DELETION_TIMEOUT)))
            .await
            .map_err(|error| failed(&error))?;
        let restore = async |node: &Node| {
            // Loading images may have been interrupted.
            let removed = self.docker.run(&node.name, &["rm", "-f", ARCHIVE_PATH]).await;
            removed.map_err(|error| failed(&error))?;
            file_systems::restore(node).await.map_err(|error| failed(&error))?;
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

/// Lists the namespaces of the runs that are not active guests. A run of the backend `existing` on
/// this cluster has a Lease soon after its namespace; a run of this backend does not, and has lost
/// its cluster by now.
async fn leftover_namespaces(client: &Client) -> Result<Vec<Namespace>, Box<dyn std::error::Error>> {
    // Listed before the Leases: a guest that begins later is not in the list.
    let listed = Namespace::list_with_records(client).await?;
    let (guests, now) = (active_runs(client).await?, ServerClock::read(client).await?.now());
    let is_left = |record: &NamespaceRecord| !guests.contains(&record.run) && !may_begin(record, now);
    Ok(listed.into_iter().filter(|(_, record)| is_left(record)).map(|(namespace, _)| namespace).collect())
}

/// Returns whether a namespace may be that of a guest that has no Lease yet.
fn may_begin(record: &NamespaceRecord, now: Timestamp) -> bool {
    match record.owner.as_ref().filter(|owner| owner.is_local()) {
        Some(owner) => owner.is_alive() && *owner != Owner::current(),
        None => record.created.is_some_and(|created| now.duration_since(created) < GUEST_START),
    }
}

/// Returns each label once, sorted.
fn distinct<'a>(labels: impl Iterator<Item = &'a String>) -> Vec<String> {
    labels.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// Kubelets of the workers of an existing cluster, with their labels and reported versions.
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
    let failed = |problem: String| ClusterError::Kubeconfig { cluster: name.to_owned(), problem };
    let kubeconfig =
        Kubeconfig::read_from(state.kubeconfig(name)).map_err(|error| failed(error.to_string()))?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| failed(error.to_string()))?;
    apply_client_settings(&mut config);
    Client::try_from(config).map_err(|error| failed(error.to_string()))
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
    let text = serde_json::to_vec_pretty(record).map_err(std::io::Error::from)?;
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
    use evictlab_embedded::{NodeOptions, Options};
    use k8s_openapi::api::coordination::v1::Lease;
    use k8s_openapi::api::core::v1::Namespace as ApiNamespace;
    use kube::Api;
    use kube::api::PostParams;
    use serde_json::json;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

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
    async fn a_clean_up_spares_active_guests() {
        let node = NodeOptions::new("a".to_owned(), "v1.32.13".parse().unwrap());
        let now = Timestamp::now();
        let past = now - SignedDuration::from_secs(600);
        let cluster = evictlab_embedded::Cluster::new(Options::new(0, past, vec![node])).unwrap();
        let client = Client::new(cluster.router(), "default");
        let _driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.live().await }));
        create_run(&client, "guest", Some(now)).await;
        create_run(&client, "dead-guest", Some(past)).await;
        create_run(&client, "of-the-cluster", None).await;
        tokio::time::sleep(Duration::from_secs(590)).await;
        // A guest that has no Lease yet.
        create_run(&client, "new-guest", None).await;
        let found = leftover_namespaces(&client).await.unwrap();
        let mut names: Vec<String> = found.into_iter().map(|namespace| namespace.name).collect();
        names.sort();
        assert_eq!(names, ["evictlab-dead-guest", "evictlab-of-the-cluster"]);
    }
}
