//! The embedded backend: one cluster for all kubelets, which ends with the process.

use std::time::Duration;

use evictlab_embedded::{CgroupVersion, Cluster, ClusterOptions, Defects, NodeOptions, OptionsError};
use evictlab_fault::Fault;
use evictlab_report::Model;
use evictlab_report::clock::Clock;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::error::ClusterError;
use crate::kubelet::Kubelet;
use crate::node::{EmbeddedNode, Node, NodeBackend, wait_until_ready};
use crate::plan::ClusterPlan;

/// Name of the cluster in reports.
const NAME: &str = "embedded";

/// Retention time of events. Every case lists the events of its node, and needs only those of its
/// own last minutes.
const EVENT_TTL: Duration = Duration::from_secs(5 * 60);

/// Options of an embedded cluster.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedOptions {
    /// Kubelets of the workers.
    pub kubelets: Vec<Kubelet>,
    /// Number of workers per kubelet.
    pub nodes: usize,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Cgroup version of the nodes.
    pub cgroup: CgroupVersion,
    /// Memory of each node in bytes; `None` for the default of the model.
    pub memory: Option<u64>,
    /// Disk of each node in bytes; `None` for the default of the model.
    pub disk: Option<u64>,
    /// Maximum number of process IDs of each node; `None` for the default of the model.
    pub pids: Option<u64>,
    /// Faults of every case.
    pub faults: Vec<Fault>,
    /// Defects of every kubelet.
    pub defects: Defects,
    /// Changes to the configuration of every kubelet, as in `NodeOptions`.
    pub kubelet_config: Map<String, Value>,
}

impl EmbeddedOptions {
    /// Names of the nodes with the indexes of their kubelets: `v1-31-worker`, `v1-31-worker2`.
    /// Kubelets of one minor version are named by their full version.
    pub fn names(&self) -> Vec<(String, usize)> {
        let minor = |kubelet: &Kubelet| (kubelet.version.major, kubelet.version.minor);
        let mut names = Vec::new();
        for (index, kubelet) in self.kubelets.iter().enumerate() {
            let is_unique = self.kubelets.iter().filter(|other| minor(other) == minor(kubelet)).count() == 1;
            let stem = if is_unique {
                format!("v{}-{}", kubelet.version.major, kubelet.version.minor)
            } else {
                dns_label(&kubelet.label)
            };
            names.push((format!("{stem}-worker"), index));
            names.extend((2..=self.nodes).map(|nth| (format!("{stem}-worker{nth}"), index)));
        }
        names
    }

    /// Options of the modelled cluster with its start time, without faults.
    pub fn options(&self, epoch: Timestamp) -> ClusterOptions {
        let node = |(name, index): (String, usize)| {
            let mut node = NodeOptions::new(name, self.kubelets[index].version.clone());
            node.cgroup = self.cgroup;
            node.kubelet_config.clone_from(&self.kubelet_config);
            node.memory = self.memory.unwrap_or(node.memory);
            if let Some(disk) = self.disk {
                // A small disk has the same relative usage as the default one.
                node.disk_used = node.disk_used.min(disk / 5);
                node.disk = disk;
            }
            node.max_pid = self.pids.unwrap_or(node.max_pid);
            node.defects = self.defects.clone();
            node
        };
        let nodes = self.names().into_iter().map(node).collect();
        ClusterOptions::new(self.seed, epoch, nodes)
    }
}

/// Converts a kubelet label to a DNS label.
fn dns_label(kubelet: &str) -> String {
    kubelet.to_ascii_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Backend with modelled kubelets.
pub struct EmbeddedBackend {
    options: EmbeddedOptions,
    repro: ReproCommand,
    pub(crate) plans: Vec<ClusterPlan>,
    cluster: Cluster,
}

/// Commands to reproduce a run, shown in reports.
#[derive(Clone, Debug, Default)]
pub struct ReproCommand {
    /// Command line options that create the same embedded cluster.
    pub options: String,
    /// Command that runs the same cases on real kubelets.
    pub on_real_kubelets: String,
}

impl EmbeddedBackend {
    /// Creates the cluster, which runs on this clock.
    ///
    /// # Errors
    /// The options of the nodes are invalid.
    pub fn new(options: EmbeddedOptions, repro: ReproCommand, clock: &Clock) -> Result<Self, OptionsError> {
        let mut cluster_options = options.options(clock.now());
        cluster_options.event_ttl = EVENT_TTL;
        let cluster = Cluster::new(cluster_options)?;
        let plans =
            vec![ClusterPlan { name: NAME.to_owned(), kubelets: options.kubelets.clone(), reused: false }];
        Ok(Self { options, repro, plans, cluster })
    }

    pub(crate) fn node_names(&self, kubelet: &str) -> Vec<String> {
        let names = self.options.names().into_iter();
        let of_kubelet = names.filter(|(_, index)| self.options.kubelets[*index].label == kubelet);
        of_kubelet.map(|(name, _)| name).collect()
    }

    fn nodes(&self, client: &Client) -> Vec<Node> {
        let node = |(name, index): (String, usize)| {
            let kubelet = &self.options.kubelets[index];
            let backend = EmbeddedNode { node: name.clone(), cluster: self.cluster.clone() };
            Node {
                name,
                kubelet: kubelet.label.clone(),
                version: kubelet.version.clone(),
                cgroup: self.options.cgroup,
                client: client.clone(),
                backend: NodeBackend::Embedded(backend),
            }
        };
        self.options.names().into_iter().map(node).collect()
    }

    /// Description of the model.
    pub(crate) fn model(&self) -> Model {
        Model {
            cgroup: self.options.cgroup,
            seed: self.options.seed,
            options: self.repro.options.clone(),
            on_real_kubelets: self.repro.on_real_kubelets.clone(),
        }
    }

    /// Faults of every case.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.options.faults
    }

    /// Starts the virtual clock; returns when all nodes are ready.
    pub(crate) async fn open(
        &self,
        plan: &ClusterPlan,
        cancel: &CancellationToken,
        step: &dyn Fn(&str),
    ) -> Result<EmbeddedHandle, ClusterError> {
        let cluster = self.cluster.clone();
        let driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.drive().await }));
        let client = Client::new(self.cluster.router(), "default");
        let nodes = self.nodes(&client);
        step("waiting for the nodes");
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ClusterError::Interrupted),
            ready = wait_until_ready(&client, nodes.len()) => {
                ready.map_err(|stalled| ClusterError::NotReady { cluster: plan.name.clone(), stalled })?;
            }
        }
        Ok(EmbeddedHandle { nodes, _driver: driver })
    }
}

/// A running embedded cluster. Its virtual clock stops on drop.
pub struct EmbeddedHandle {
    pub(crate) nodes: Vec<Node>,
    _driver: AbortOnDropHandle<()>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::ImageCatalog;
    use crate::modelled_kubelets;

    #[test]
    fn nodes_are_named_after_their_kubelets() {
        let names = |kubelets: &[&str], nodes| {
            let specs: Vec<_> = kubelets.iter().map(|text| text.parse().unwrap()).collect();
            let kubelets = modelled_kubelets(&specs, &ImageCatalog::load(None).unwrap()).unwrap();
            let options = EmbeddedOptions { kubelets, nodes, ..EmbeddedOptions::default() };
            options.names().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["v1.31", "v1.32"], 1), ["v1-31-worker", "v1-32-worker"]);
        assert_eq!(names(&["v1.31"], 2), ["v1-31-worker", "v1-31-worker2"]);
        assert_eq!(
            names(&["v1.31.3", "v1.31.3", "v1.32"], 1),
            ["v1-31-3-worker", "v1-31-3-2-worker", "v1-32-worker"]
        );
    }
}
