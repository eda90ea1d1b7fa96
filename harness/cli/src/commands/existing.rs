//! The arguments that say which existing cluster, and what may be done to it.

use std::path::PathBuf;

use evictlab_runner::cluster::{Access, Asked, ExistingError};

use super::size::Size;
use crate::failure::{Failure, bad_input, infrastructure};

/// What a case may take, unless another cap is stated: 2Gi.
const CAP: u64 = 2 << 30;

/// Which cluster.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of existing clusters")]
pub struct AccessArgs {
    /// The cluster's kubeconfig [default: the files of KUBECONFIG, else ~/.kube/config, else what a pod has]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl AccessArgs {
    /// How they say that the cluster is found.
    pub fn access(&self) -> Access {
        Access { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }

    /// Which of them were given.
    pub fn given(&self) -> [(bool, &'static str); 2] {
        [(self.kubeconfig.is_some(), "--kubeconfig"), (self.context.is_some(), "--context")]
    }
}

/// Which cluster, which of its nodes, and how far a run may go.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of existing clusters")]
pub struct ExistingArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// Exactly the nodes with these labels, such as `pool=evictions` [default: those for everybody: ready, neither control planes, cordoned
    /// nor tainted]
    #[arg(long, value_name = "SELECTOR")]
    node_selector: Option<String>,
    /// Also run cases that starve their node, on nodes that are selected or tainted, up to the node's own threshold
    #[arg(long)]
    allow_disruption: bool,
    /// Skip cases that would take more than this of a node's memory or disk [default: 2Gi]
    #[arg(long, value_name = "SIZE", requires = "allow_disruption")]
    pressure_cap: Option<Size>,
}

impl ExistingArgs {
    /// What they ask of the cluster.
    pub fn asked(&self) -> Asked {
        Asked {
            access: self.access.access(),
            node_selector: self.node_selector.clone(),
            allow_disruption: self.allow_disruption,
            cap: self.pressure_cap.as_ref().map_or(CAP, |cap| cap.bytes),
        }
    }

    /// Which of them were given.
    pub fn given(&self) -> [(bool, &'static str); 5] {
        let [kubeconfig, context] = self.access.given();
        [
            kubeconfig,
            context,
            (self.node_selector.is_some(), "--node-selector"),
            (self.allow_disruption, "--allow-disruption"),
            (self.pressure_cap.is_some(), "--pressure-cap"),
        ]
    }
}

/// Refuses what only clusters have that evictlab makes.
pub fn only_when_made(given: &[(bool, &str)]) -> Result<(), Failure> {
    match given.iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, name)) => Err(bad_input(format!(
            "{name} is for clusters that evictlab makes, and this is an existing one, whose nodes have their kubelets\nChoose among its nodes with --node-selector."
        ))),
    }
}

/// A cluster that was asked for and cannot be used.
pub fn unusable(error: ExistingError) -> Failure {
    if error.is_input() { bad_input(error) } else { infrastructure(error) }
}
