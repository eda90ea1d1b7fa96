//! One cluster for any kubelets. Nothing of it is left when the run is over.

use std::sync::Arc;
use std::time::Duration;

use evictlab_embedded::fault::Fault;
use evictlab_embedded::{CgroupVersion, Cluster, NodeOptions, Options, OptionsError};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready as at_once};
use jiff::Timestamp;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::machine::EmbeddedMachine;
use crate::clock::Clock;
use crate::cluster::ready::ready;
use crate::cluster::{Backend, ClusterError, Ended, Ending, Kubelet, Node, Opened, Plan};
use crate::report::Model;

/// The cluster's name in reports.
const NAME: &str = "embedded";

/// How long events are kept. Every case reads those of its node; a run that asks only for its own last minutes needs those of hours ago for nothing.
const EVENT_TTL: Duration = Duration::from_secs(5 * 60);

/// What an embedded cluster is to be.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The kubelets.
    pub kubelets: Vec<Kubelet>,
    /// Workers for each kubelet.
    pub nodes: usize,
    /// All chance comes from it.
    pub seed: u64,
    /// The kernel's control groups.
    pub cgroup: CgroupVersion,
    /// Memory of each node, in bytes; the model's own, if it is not stated.
    pub memory: Option<u64>,
    /// The disk of each node, in bytes.
    pub disk: Option<u64>,
    /// The highest process number of each node.
    pub pids: Option<u64>,
    /// What goes wrong in every case.
    pub faults: Vec<Fault>,
}

impl Shape {
    /// The names of the nodes with the places of their kubelets: `v1-31-worker`, `v1-31-worker2`, with the whole version where two
    /// kubelets are of one minor.
    pub fn names(&self) -> Vec<(String, usize)> {
        let minor = |kubelet: &Kubelet| (kubelet.version.major, kubelet.version.minor);
        let mut names = Vec::new();
        for (place, kubelet) in self.kubelets.iter().enumerate() {
            let alone = self.kubelets.iter().filter(|other| minor(other) == minor(kubelet)).count() == 1;
            let stem = match alone {
                true => format!("v{}-{}", kubelet.version.major, kubelet.version.minor),
                false => label(&kubelet.label),
            };
            names.push((format!("{stem}-worker"), place));
            names.extend((2..=self.nodes).map(|nth| (format!("{stem}-worker{nth}"), place)));
        }
        names
    }

    /// The options of a cluster that begins at a moment of the calendar, without faults.
    pub fn options(&self, epoch: Timestamp) -> Options {
        let node = |(name, place): (String, usize)| {
            let mut node = NodeOptions::new(name, self.kubelets[place].version.clone());
            node.cgroup = self.cgroup;
            node.memory = self.memory.unwrap_or(node.memory);
            if let Some(disk) = self.disk {
                // Of a small disk as much is in use as of the usual one.
                node.disk_used = node.disk_used.min(disk / 5);
                node.disk = disk;
            }
            node.max_pid = self.pids.unwrap_or(node.max_pid);
            node
        };
        let nodes = self.names().into_iter().map(node).collect();
        Options::new(self.seed, epoch, nodes)
    }
}

/// A kubelet's label as a DNS label.
fn label(kubelet: &str) -> String {
    kubelet.to_ascii_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// What models kubelets.
pub struct EmbeddedBackend {
    shape: Shape,
    words: Words,
    plans: Vec<Plan>,
    cluster: Cluster,
}

/// What reports say of an embedded cluster.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// What makes the same again, as options of a command line.
    pub options: String,
    /// The command that does the same on real kubelets.
    pub on_real_kubelets: String,
}

impl EmbeddedBackend {
    /// A cluster whose time is the clock's.
    ///
    /// # Errors
    /// Nodes that cannot be.
    pub fn new(shape: Shape, words: Words, clock: &Clock) -> Result<Self, OptionsError> {
        let mut options = shape.options(clock.now());
        options.event_ttl = EVENT_TTL;
        let cluster = Cluster::new(options)?;
        let plans = vec![Plan { name: NAME.to_owned(), kubelets: shape.kubelets.clone(), reused: false }];
        Ok(Self { shape, words, plans, cluster })
    }

    fn nodes(&self, client: &Client) -> Vec<Node> {
        let node = |(name, place): (String, usize)| {
            let kubelet = &self.shape.kubelets[place];
            let machine = EmbeddedMachine { node: name.clone(), cluster: self.cluster.clone() };
            Node {
                name,
                kubelet: kubelet.label.clone(),
                version: kubelet.version.clone(),
                cgroup_v1: self.shape.cgroup == CgroupVersion::V1,
                client: client.clone(),
                machine: Arc::new(machine),
            }
        };
        self.shape.names().into_iter().map(node).collect()
    }
}

impl Backend for EmbeddedBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plans(&self) -> &[Plan] {
        &self.plans
    }

    fn model(&self) -> Option<Model> {
        Some(Model {
            cgroup: match self.shape.cgroup {
                CgroupVersion::V1 => "v1".to_owned(),
                CgroupVersion::V2 => "v2".to_owned(),
            },
            seed: self.shape.seed,
            options: self.words.options.clone(),
            on_real_kubelets: self.words.on_real_kubelets.clone(),
        })
    }

    fn faults(&self) -> Option<&[Fault]> {
        Some(&self.shape.faults)
    }

    fn is_one_host(&self) -> bool {
        false
    }

    fn open<'a>(
        &'a self,
        plan: &'a Plan,
        _: &'a [String],
        cancel: &'a CancellationToken,
        step: &'a dyn Fn(&str),
    ) -> LocalBoxFuture<'a, Result<Box<dyn Opened>, ClusterError>> {
        async move {
            let cluster = self.cluster.clone();
            let live = AbortOnDropHandle::new(tokio::spawn(async move { cluster.live().await }));
            let client = Client::new(self.cluster.router(), "default");
            let nodes = self.nodes(&client);
            step("waiting for the nodes");
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ClusterError::Interrupted),
                ready = ready(&client, &plan.name, nodes.len()) => ready?,
            }
            Ok(Box::new(Lived { nodes, _live: live }) as Box<dyn Opened>)
        }
        .boxed_local()
    }

    fn clear<'a>(&'a self, _: &'a Plan, _: Ending) -> LocalBoxFuture<'a, Option<Ended>> {
        at_once(Some(Ended::default())).boxed_local()
    }
}

/// An embedded cluster whose time goes on.
struct Lived {
    nodes: Vec<Node>,
    _live: AbortOnDropHandle<()>,
}

impl Opened for Lived {
    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn end(self: Box<Self>, _: Ending) -> LocalBoxFuture<'static, Option<Ended>> {
        at_once(Some(Ended::default())).boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::modelled;
    use crate::images::Lock;

    #[test]
    fn nodes_are_named_by_their_kubelets() {
        let names = |kubelets: &[&str], nodes| {
            let specs: Vec<_> = kubelets.iter().map(|text| text.parse().unwrap()).collect();
            let kubelets = modelled(&specs, &Lock::load(None).unwrap()).unwrap();
            let shape = Shape { kubelets, nodes, ..Shape::default() };
            shape.names().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["v1.31", "v1.32"], 1), ["v1-31-worker", "v1-32-worker"]);
        assert_eq!(names(&["v1.31"], 2), ["v1-31-worker", "v1-31-worker2"]);
        assert_eq!(
            names(&["v1.31.3", "v1.31.3", "v1.32"], 1),
            ["v1-31-3-worker", "v1-31-3-2-worker", "v1-32-worker"]
        );
    }
}
