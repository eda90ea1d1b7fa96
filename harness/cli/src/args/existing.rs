//! Arguments of existing clusters.

use std::path::PathBuf;

use clap_complete::engine::ArgValueCandidates;
use evictlab_cluster::{ClusterAccess, ExistingError, ExistingOptions, NodePermissions};

use evictlab_rules::quantity::GIB;

use crate::args::backend::stated;
use crate::args::candidates;
use crate::args::values::{ByteSize, whole_number};
use crate::failure::Failure;
use crate::profile::removal;

/// The default of `--pressure-cap`: 2Gi.
const DEFAULT_PRESSURE_CAP: u64 = 2 * GIB;

/// Access to an existing cluster.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of existing clusters")]
pub(crate) struct AccessArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, else ~/.kube/config, else the service
    /// account of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(candidates::contexts))]
    context: Option<String>,
}

impl AccessArgs {
    /// Returns the access to the cluster.
    pub(crate) fn access(&self) -> ClusterAccess {
        ClusterAccess { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }

    /// Returns the names of the stated options.
    pub(crate) fn stated_options(&self) -> Vec<&'static str> {
        stated([("--kubeconfig", self.kubeconfig.is_some()), ("--context", self.context.is_some())])
    }
}

/// Access to an existing cluster, its nodes, and the permitted pressure.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of existing clusters")]
pub(crate) struct ExistingArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// Use exactly the nodes with these labels, such as `pool=evictions` [default: at most four
    /// ready nodes of each version that are not control plane nodes, cordoned, or tainted]
    #[arg(long, value_name = "SELECTOR")]
    node_selector: Option<String>,
    /// Also run cases that put their node under pressure, on nodes that are selected or tainted, up
    /// to the node's own threshold
    #[arg(long)]
    allow_disruption: bool,
    /// Also put selected nodes under pressure on which other pods run: they may be evicted
    #[arg(long, requires_all = ["allow_disruption", "node_selector"])]
    allow_other_pods: bool,
    /// Also use selected control plane nodes
    #[arg(long, requires = "node_selector")]
    allow_control_plane: bool,
    /// Also run cases that need more than pods of the Pod Security Standard `baseline`: privileged
    /// pods, host namespaces, paths and ports, API tokens, storage claims, and objects that act
    /// beyond their namespace; read these cases first
    #[arg(long)]
    allow_privileged: bool,
    /// Put at most this many nodes under pressure at a time [default: 1]
    #[arg(long, value_name = "N", requires = "allow_disruption", value_parser = whole_number::<u16>(1..))]
    max_starved_nodes: Option<u16>,
    /// Hold at most this many nodes of each kubelet version, and leave the others to other runs
    /// [default: all that are selected]
    #[arg(long, value_name = "N", value_parser = whole_number::<u16>(1..))]
    nodes_per_version: Option<u16>,
    /// Skip cases that would allocate more than this of a node's memory or disk [default: 2Gi]
    #[arg(long, value_name = "SIZE", requires = "allow_disruption")]
    pressure_cap: Option<ByteSize>,
}

impl ExistingArgs {
    /// Returns the access to the cluster.
    pub(crate) fn access(&self) -> ClusterAccess {
        self.access.access()
    }

    /// Returns the label selector of the nodes.
    pub(crate) fn node_selector(&self) -> Option<&str> {
        self.node_selector.as_deref()
    }

    /// Returns the arguments from the command line, without the access to the cluster.
    pub(crate) fn words(&self) -> Vec<String> {
        let switches = [
            ("--allow-disruption", self.allow_disruption),
            ("--allow-other-pods", self.allow_other_pods),
            ("--allow-control-plane", self.allow_control_plane),
            ("--allow-privileged", self.allow_privileged),
        ];
        let number = |number: Option<u16>| number.map(|number| number.to_string());
        let values = [
            ("--node-selector", self.node_selector.clone()),
            ("--max-starved-nodes", number(self.max_starved_nodes)),
            ("--nodes-per-version", number(self.nodes_per_version)),
            ("--pressure-cap", self.pressure_cap.as_ref().map(|cap| cap.text.clone())),
        ];
        let values = values.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten();
        let switches = switches.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.to_owned());
        values.chain(switches).collect()
    }

    /// Returns the options of the backend.
    pub(crate) fn options(&self) -> ExistingOptions {
        ExistingOptions {
            access: self.access.access(),
            node_selector: self.node_selector.clone(),
            permissions: NodePermissions {
                disruption: self.allow_disruption,
                other_pods: self.allow_other_pods,
                control_planes: self.allow_control_plane,
                privileged: self.allow_privileged,
            },
            max_pressure_bytes: self.pressure_cap.as_ref().map_or(DEFAULT_PRESSURE_CAP, |cap| cap.bytes),
            max_nodes_under_pressure: self.max_starved_nodes.unwrap_or(1).into(),
            nodes_per_version: self.nodes_per_version.map(Into::into),
        }
    }

    /// Returns the names of the stated options.
    pub(crate) fn stated_options(&self) -> Vec<&'static str> {
        let mut options = self.access.stated_options();
        options.extend(stated([
            ("--node-selector", self.node_selector.is_some()),
            ("--allow-disruption", self.allow_disruption),
            ("--pressure-cap", self.pressure_cap.is_some()),
            ("--allow-other-pods", self.allow_other_pods),
            ("--allow-control-plane", self.allow_control_plane),
            ("--allow-privileged", self.allow_privileged),
            ("--max-starved-nodes", self.max_starved_nodes.is_some()),
            ("--nodes-per-version", self.nodes_per_version.is_some()),
        ]));
        options
    }
}

/// Rejects stated options that only apply to managed clusters.
pub(crate) fn reject_managed_options(stated: &[&str]) -> Result<(), Failure> {
    let Some(name) = stated.first() else { return Ok(()) };
    let removal = removal(name).map(|removal| format!("{removal}, and ")).unwrap_or_default();
    Err(Failure::bad_input(format!(
        "{name} applies only to clusters created by evictlab, and the backend is existing\nhelp: {removal}select nodes of the existing cluster with --node-selector"
    )))
}

/// Returns exit status 2 for invalid input, else 4.
pub(crate) fn existing_failure(error: ExistingError) -> Failure {
    Failure::input_or_infrastructure(error.is_input(), error)
}
