//! Nodes that a run borrows.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use evictlab_embedded::fault::Fault;
use evictlab_rules::KubeletVersion;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, try_join_all};
use kube::{Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::look::look;
use super::machine::ExistingMachine;
use super::nodes::{Choice, of_one_kernel, others};
use super::rights::TO_RUN;
use super::sweep::sweep;
use super::{Access, ExistingError, Reached, gc};
use crate::cluster::{Backend, Borrowed, ClusterError, Ended, Ending, Kubelet, Node, Opened, Plan};
use crate::report::Model;
use crate::reset::CANARY;
use crate::stage::Namespace;

/// Why an existing cluster stays.
const BEFORE: &str = "it was there before";

/// What is asked of an existing cluster.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How it is found.
    pub access: Access,
    /// The nodes to use, as a label selector; if none is stated, those that are for everybody.
    pub node_selector: Option<String>,
    /// Whether nodes that are selected or tainted may be starved.
    pub allow_disruption: bool,
    /// The most that a case may take of a node's memory or disk, in bytes.
    pub cap: u64,
}

/// A node to be borrowed.
struct Chosen {
    name: String,
    version: KubeletVersion,
    borrowed: Borrowed,
}

/// A cluster that was there before.
pub struct ExistingBackend {
    run: String,
    reached: Reached,
    chosen: Vec<Chosen>,
    left_out: Vec<String>,
    one_host: bool,
    image: String,
    plans: Vec<Plan>,
}

impl ExistingBackend {
    /// Asks the cluster for its nodes, and what may be done there. Nothing is made. `image` gives the full name of a case's image.
    pub async fn reach(
        run: &str,
        asked: &Asked,
        image: impl Fn(&str) -> String,
    ) -> Result<Self, ExistingError> {
        let reached = asked.access.reach().await?;
        let wanted = reached.nodes(asked.node_selector.as_deref()).await?;
        let all = match asked.node_selector {
            Some(_) => reached.nodes(None).await?,
            None => wanted.clone(),
        };
        reached.permits(&TO_RUN).await?;
        let pods = match asked.allow_disruption {
            true => reached.pods().await?,
            false => Vec::new(),
        };
        let choice = Choice { selected: asked.node_selector.is_some(), disruption: asked.allow_disruption };
        let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
        for node in &wanted {
            let name = node.name_any();
            let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
            let version = info.map(|info| info.kubelet_version.parse::<KubeletVersion>());
            match (choice.leaves_out(node), version) {
                (Some(why), _) => left_out.push(format!("{name} {why}")),
                (None, Some(Ok(version))) => {
                    let spared = choice.spares(node, &others(&pods, &name));
                    let borrowed = Borrowed { spared, beside: Vec::new(), cap: asked.cap };
                    chosen.push(Chosen { name, version, borrowed });
                }
                (None, Some(Err(error))) => {
                    left_out.push(format!("{name} runs no kubelet that is known ({error})"))
                }
                (None, None) => left_out.push(format!("{name} does not tell its kubelet's version")),
            }
        }
        if chosen.is_empty() {
            let left_out = left_out.join(", ");
            return Err(match &asked.node_selector {
                Some(selector) => ExistingError::Selector {
                    selector: selector.clone(),
                    problem: format!("selects no node that can be used: {left_out}"),
                },
                None => ExistingError::NoNodes { cluster: reached.name, left_out },
            });
        }
        let plans = vec![Plan { name: reached.name.clone(), kubelets: kubelets(&chosen), reused: true }];
        let neighbours: Vec<Vec<String>> =
            chosen.iter().map(|chosen| of_one_kernel(&all, &chosen.name)).collect();
        let starved = |name: &String| {
            chosen.iter().any(|chosen| chosen.name == *name && chosen.borrowed.spared.is_none())
        };
        let kept = |names: &Vec<String>| names.iter().filter(|name| !starved(name)).cloned().collect();
        let beside: Vec<Vec<String>> = neighbours.iter().map(kept).collect();
        for (chosen, beside) in chosen.iter_mut().zip(beside) {
            chosen.borrowed.beside = beside;
        }
        let one_host = neighbours.iter().any(|names| !names.is_empty());
        Ok(Self { run: run.to_owned(), reached, chosen, left_out, one_host, image: image(CANARY), plans })
    }

    /// Borrows the nodes: asks each for what only a pod on it can tell.
    async fn borrow(&self, step: &dyn Fn(&str)) -> Result<Used, ExistingError> {
        let Reached { name, server, client } = &self.reached;
        let names: Vec<&str> = self.chosen.iter().map(|chosen| chosen.name.as_str()).collect();
        step(&format!("{} at {server}: {}", counted(names.len(), "node"), names.join(", ")));
        if !self.left_out.is_empty() {
            step(&format!("left alone: {}", self.left_out.join(", ")));
        }
        for other in gc::found(&self.reached).await? {
            let namespaces = counted(other.namespaces, "namespace");
            step(&match other.left_alone {
                Some(why) => format!("run {} uses this cluster, too ({namespaces}; {why})", other.run),
                None => format!(
                    "run {} is dead and left {namespaces}: `evictlab gc --backend existing` removes them",
                    other.run
                ),
            });
        }
        step("asking the nodes for their kernels' cgroups");
        let namespace = Arc::new(Namespace::create(client, &self.run, "look").await?);
        let nodes = try_join_all(self.chosen.iter().map(async |chosen| {
            let looked = look(&namespace, &chosen.name, &self.image).await?;
            let machine = Arc::new(ExistingMachine {
                node: chosen.name.clone(),
                borrowed: chosen.borrowed.clone(),
                namespace: namespace.clone(),
                image: self.image.clone(),
                lacks: Mutex::default(),
            });
            let node = Node {
                name: chosen.name.clone(),
                kubelet: chosen.version.to_string(),
                version: chosen.version.clone(),
                cgroup_v1: looked.cgroup_v1,
                client: client.clone(),
                machine: machine.clone(),
            };
            Ok::<_, ExistingError>((node, machine))
        }));
        let (nodes, machines) = nodes.await?.into_iter().unzip();
        Ok(Used {
            nodes,
            machines,
            namespace,
            cluster: name.clone(),
            run: self.run.clone(),
            image: self.image.clone(),
        })
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The kubelets of the nodes, each version once, new ones first.
fn kubelets(chosen: &[Chosen]) -> Vec<Kubelet> {
    let versions: BTreeSet<&KubeletVersion> = chosen.iter().map(|chosen| &chosen.version).collect();
    let kubelet = |version: &KubeletVersion| Kubelet {
        label: version.to_string(),
        version: version.clone(),
        image: String::new(),
        image_version: version.clone(),
        binary: None,
    };
    versions.into_iter().rev().map(kubelet).collect()
}

impl Backend for ExistingBackend {
    fn name(&self) -> &'static str {
        "existing"
    }

    fn plans(&self) -> &[Plan] {
        &self.plans
    }

    fn model(&self) -> Option<Model> {
        None
    }

    fn faults(&self) -> Option<&[Fault]> {
        None
    }

    fn is_one_host(&self) -> bool {
        self.one_host
    }

    fn open<'a>(
        &'a self,
        _: &'a Plan,
        images: &'a [String],
        cancel: &'a CancellationToken,
        step: &'a dyn Fn(&str),
    ) -> LocalBoxFuture<'a, Result<Box<dyn Opened>, ClusterError>> {
        async move {
            let borrowing = async {
                let used = self.borrow(step).await?;
                used.pull(images, step).await?;
                Ok(Box::new(used) as Box<dyn Opened>)
            };
            cancel.run_until_cancelled(borrowing).await.unwrap_or(Err(ClusterError::Interrupted))
        }
        .boxed_local()
    }

    fn clear<'a>(&'a self, plan: &'a Plan, _: Ending) -> LocalBoxFuture<'a, Option<Ended>> {
        left(self.reached.client.clone(), plan.name.clone(), self.run.clone()).boxed_local()
    }
}

/// Removes the run's namespaces, and leaves the cluster.
async fn left(client: Client, cluster: String, run: String) -> Option<Ended> {
    let swept = sweep(&client, &cluster, &run).await;
    Some(Ended { kept: Some(BEFORE), error: swept.err().map(ClusterError::from) })
}

/// An existing cluster that a run uses.
struct Used {
    nodes: Vec<Node>,
    machines: Vec<Arc<ExistingMachine>>,
    namespace: Arc<Namespace>,
    cluster: String,
    run: String,
    /// What the nodes have shown to have.
    image: String,
}

impl Used {
    /// Lets the nodes pull what they have not shown to have.
    async fn pull(&self, images: &[String], step: &dyn Fn(&str)) -> Result<(), ExistingError> {
        for (nth, image) in images.iter().enumerate().filter(|(_, image)| **image != self.image) {
            step(&format!("letting the nodes pull {image}"));
            try_join_all(self.machines.iter().map(|machine| machine.pull(image, nth))).await?;
        }
        Ok(())
    }
}

impl Opened for Used {
    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn end(self: Box<Self>, _: Ending) -> LocalBoxFuture<'static, Option<Ended>> {
        let client = self.namespace.client().clone();
        left(client, self.cluster, self.run).boxed_local()
    }
}
