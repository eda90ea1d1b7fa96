//! A kind cluster from its first trace to its last.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::try_join_all;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;

use super::config::{Base, label_value};
use super::record::NODE_FILE;
use super::skew::Group;
use super::workers::{all_workers, chosen, put_in, workers};
use super::{Docker, DockerError, Owner, Record, Standing, StateDir, command, makers};
use crate::cluster::ready::{SILENCE, ready};
use crate::cluster::{ClusterError, Kubelet, Node};
use crate::images::ARCHIVE;
use crate::stage::Namespace;
use crate::tune;
use crate::wait::{self, Probe};

/// The label that kind puts on its node containers.
pub const KIND_LABEL: &str = "io.x-k8s.kind.cluster";

/// The label that says what part a node container has: `control-plane`, `worker`.
pub const ROLE_LABEL: &str = "io.x-k8s.kind.role";

/// How long the containers of a cluster may show no change while it is deleted.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long the pods of a run may show no change on their way out.
const PODS_PATIENCE: Duration = Duration::from_secs(60);

/// A kind cluster with its workers.
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its API client.
    pub client: Client,
    /// Its workers, ready.
    pub nodes: Vec<Node>,
    /// What is written down about it.
    pub record: Record,
    state: StateDir,
    docker: Docker,
}

impl Cluster {
    /// Makes a cluster for a group of kubelets, `nodes` workers each, and waits until every node is ready and runs the kubelet that was
    /// asked for. The record must be written already; whatever happens, [`delete`] with its name leaves nothing.
    pub async fn create(
        docker: &Docker,
        state: &StateDir,
        record: Record,
        plan: (&Group, &Base, usize),
        cancel: &CancellationToken,
        mut progress: impl FnMut(&str),
    ) -> Result<Self, ClusterError> {
        let (group, base, nodes) = plan;
        let name = record.cluster.clone();
        let cgroup_v1 = docker.cgroup_v1().await?;
        let config = state.config(&name);
        std::fs::write(&config, base.compose(group, nodes, cgroup_v1)?)?;
        let kubeconfig = state.make_kubeconfig(&name)?;
        command::create(&name, &config, &kubeconfig, cancel, &mut progress)
            .await
            .map_err(|error| of_kind(error, &name))?;
        sign(docker, &record).await?;
        let client = client(state, &name).await?;
        let work = async {
            progress("waiting for the nodes");
            ready(&client, &name, 1 + group.kubelets.len() * nodes).await?;
            let made = all_workers(docker, &client, cgroup_v1).await?;
            put_in(docker, &client, &group.kubelets, &made, &mut progress).await?;
            let nodes = workers(docker, &client, &group.kubelets, cgroup_v1).await?;
            Ok::<_, ClusterError>(nodes)
        };
        let nodes = tokio::select! {
            biased;
            nodes = work => nodes?,
            () = cancel.cancelled() => return Err(ClusterError::Interrupted),
        };
        Ok(Self { name, client, nodes, record, state: state.clone(), docker: docker.clone() })
    }

    /// Takes a cluster that was kept, for these kubelets.
    pub async fn open(
        docker: &Docker,
        state: &StateDir,
        name: &str,
        kubelets: &[Kubelet],
    ) -> Result<Self, ClusterError> {
        let record = state.read(name).ok_or_else(|| ClusterError::Unknown(name.to_owned()))?;
        let cgroup_v1 = docker.cgroup_v1().await?;
        let client = client(state, name).await?;
        ready(&client, name, 2).await?;
        let all = all_workers(docker, &client, cgroup_v1).await?;
        let mut has: Vec<String> = all.iter().map(|node| node.kubelet.clone()).collect();
        has.dedup();
        let nodes = chosen(all, kubelets).map_err(|kubelet| ClusterError::NoWorker {
            cluster: name.to_owned(),
            kubelet,
            has: has.join(", "),
        })?;
        Ok(Self {
            name: name.to_owned(),
            client,
            nodes,
            record,
            state: state.clone(),
            docker: docker.clone(),
        })
    }

    /// Takes a kept cluster for a process, so that nobody else does; what a dead one left in it is swept first.
    pub async fn take(&mut self, owner: Owner) -> Result<(), ClusterError> {
        if self.record.standing() == Standing::Live && self.record.owner != owner {
            return Err(ClusterError::InUse { cluster: self.name.clone(), pid: self.record.owner.pid });
        }
        if self.record.owner == owner {
            return Ok(());
        }
        self.record.owner = owner;
        self.state.write(&self.record)?;
        // Who has another state folder reads it in the nodes.
        sign(&self.docker, &self.record).await?;
        self.sweep(None).await
    }

    /// Puts the binaries among these kubelets into the workers that were chosen for them.
    pub async fn put_in(
        &mut self,
        kubelets: &[Kubelet],
        progress: &dyn Fn(&str),
    ) -> Result<(), ClusterError> {
        let binaries: Vec<&Kubelet> = kubelets.iter().filter(|kubelet| kubelet.binary.is_some()).collect();
        if binaries.is_empty() {
            return Ok(());
        }
        put_in(&self.docker, &self.client, kubelets, &self.nodes, progress).await?;
        for node in &mut self.nodes {
            if let Some(kubelet) = binaries.iter().find(|kubelet| label_value(&kubelet.label) == node.kubelet)
            {
                node.version = kubelet.version.clone();
            }
        }
        let all = all_workers(&self.docker, &self.client, false).await?;
        let mut labels: Vec<String> = all.into_iter().map(|node| node.kubelet).collect();
        labels.dedup();
        if labels != self.record.kubelets {
            self.record.kubelets = labels;
            self.state.write(&self.record)?;
            sign(&self.docker, &self.record).await?;
        }
        Ok(())
    }

    /// Deletes the namespaces of a run, or of every run, and puts the nodes back as they were.
    pub async fn sweep(&self, run: Option<&str>) -> Result<(), ClusterError> {
        let failed = |error: &dyn std::fmt::Display| ClusterError::Sweep {
            cluster: self.name.clone(),
            problem: error.to_string(),
        };
        let namespaces = Namespace::of(&self.client, run).await.map_err(|error| failed(&error))?;
        try_join_all(namespaces.iter().map(|namespace| namespace.delete(PODS_PATIENCE)))
            .await
            .map_err(|error| failed(&error))?;
        let put_back = async |node: &Node| {
            // Images may have been on their way.
            self.docker.run(&node.name, &["rm", "-f", ARCHIVE]).await.map_err(|error| failed(&error))?;
            tune::restore(node).await.map_err(|error| failed(&error))
        };
        try_join_all(self.nodes.iter().map(put_back)).await.map(drop)
    }

    /// Leaves the cluster to whoever comes next.
    pub async fn keep(&mut self) -> Result<(), ClusterError> {
        self.record.kept = true;
        self.state.write(&self.record)?;
        sign(&self.docker, &self.record).await
    }

    /// Where its kubeconfig lies.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.kubeconfig(&self.name)
    }
}

/// The kubelets of a kept cluster's workers, as labelled and as they report themselves.
pub async fn kubelets_of(
    docker: &Docker,
    state: &StateDir,
    name: &str,
) -> Result<Vec<Kubelet>, ClusterError> {
    let mut kubelets: Vec<Kubelet> = Vec::new();
    for node in Cluster::open(docker, state, name, &[]).await?.nodes {
        if kubelets.iter().all(|kubelet| kubelet.label != node.kubelet) {
            let (label, version) = (node.kubelet, node.version);
            let image_version = version.clone();
            kubelets.push(Kubelet { label, version, image: String::new(), image_version, binary: None });
        }
    }
    Ok(kubelets)
}

/// Writes a new cluster down before anything of it is there. What a dead run left under its name goes first.
pub async fn claim(docker: &Docker, state: &StateDir, record: &Record) -> Result<(), ClusterError> {
    let name = &record.cluster;
    if state.read(name).is_some_and(|earlier| earlier.standing() == Standing::Dead) {
        delete(docker, state, name).await?;
    }
    match state.claim(record)? {
        true => Ok(()),
        false => Err(ClusterError::Exists(name.clone())),
    }
}

/// Deletes a cluster by every means, and everything that is known of it. Also one that is still being made, by a run that was killed:
/// kind is stopped, and what its `docker` commands bring is removed until the last of them has ended.
pub async fn delete(docker: &Docker, state: &StateDir, name: &str) -> Result<(), ClusterError> {
    makers::stop(name).await;
    let by_kind = command::delete(name, &state.kubeconfig(name)).await;
    let (mut quiet, mut refused) = (0, None);
    let gone = wait::until(PATIENCE, Duration::from_millis(250), async || {
        let there = match containers(docker, name).await {
            Ok(there) => there,
            Err(error) => {
                refused = Some(error);
                return Probe::Pending("Docker does not answer".to_owned());
            }
        };
        let makers = makers::of(name);
        quiet = if there.is_empty() && makers.is_empty() { quiet + 1 } else { 0 };
        if quiet == 2 {
            return Probe::Done(());
        }
        for container in &there {
            // Docker may be busy with it; it is tried again.
            refused = docker.remove(&container.id).await.err().or(refused.take());
        }
        let names = there.into_iter().map(|container| container.name);
        let makers = makers.into_iter().map(|pid| format!("process {pid} at work on it"));
        Probe::Pending(names.chain(makers).collect::<Vec<_>>().join(", "))
    })
    .await;
    match (gone, refused, by_kind) {
        (Ok(()), ..) => Ok(state.forget(name)?),
        (Err(_), Some(refused), _) => Err(refused.into()),
        (Err(_), None, Err(by_kind)) => Err(by_kind.into()),
        (Err(left), None, Ok(())) => Err(ClusterError::Left { cluster: name.to_owned(), left: left.last }),
    }
}

/// The containers of a cluster.
pub async fn containers(docker: &Docker, name: &str) -> Result<Vec<super::Container>, DockerError> {
    docker.containers(&format!("{KIND_LABEL}={name}")).await
}

/// A client by the kubeconfig that kind wrote.
pub async fn client(state: &StateDir, name: &str) -> Result<Client, ClusterError> {
    let failed = |problem: String| ClusterError::Kubeconfig { cluster: name.to_owned(), problem };
    let kubeconfig =
        Kubeconfig::read_from(state.kubeconfig(name)).map_err(|error| failed(error.to_string()))?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| failed(error.to_string()))?;
    config.read_timeout = Some(SILENCE);
    // A refused eviction (429) is an answer, which kube would take minutes to give.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| failed(error.to_string()))
}

/// Leaves the record in every node, so that a cluster can be told even where the state folder is gone.
async fn sign(docker: &Docker, record: &Record) -> Result<(), ClusterError> {
    let text = serde_json::to_vec_pretty(record).map_err(std::io::Error::from)?;
    for container in containers(docker, &record.cluster).await? {
        docker.write_file(&container.id, NODE_FILE, 0o644, &text).await?;
    }
    Ok(())
}

fn of_kind(error: command::KindError, name: &str) -> ClusterError {
    match error {
        command::KindError::Interrupted => ClusterError::Interrupted,
        command::KindError::Taken => ClusterError::Exists(name.to_owned()),
        other => ClusterError::Kind(other),
    }
}
