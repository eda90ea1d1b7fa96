//! Arguments of commands that create or reuse kind clusters.

use std::path::PathBuf;

use clap_complete::engine::ArgValueCandidates;
use evictlab_cluster::{ClusterName, ClusterSource, KeepPolicy, KindConfig};

use crate::args::backend::stated;
use crate::args::candidates;
use crate::failure::Failure;

/// Highest number of nodes for each kubelet of a kind cluster: they share a Docker host.
const MAX_KIND_NODES: u16 = 16;

/// The new cluster of a command; with several groups of kubelets, its name is a prefix.
#[derive(Clone, Debug)]
pub(crate) struct NewClusterSource {
    pub(crate) name: String,
    pub(crate) base: KindConfig,
    /// Number of workers for each kubelet.
    pub(crate) nodes: usize,
}

impl From<NewClusterSource> for ClusterSource {
    fn from(NewClusterSource { name, base, nodes }: NewClusterSource) -> Self {
        Self::New { name, base, nodes }
    }
}

/// Name and configuration of a new kind cluster.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of kind clusters")]
pub(crate) struct NewClusterArgs {
    /// Name of the new cluster
    #[arg(long, value_name = "NAME")]
    name: Option<ClusterName>,
    /// kind configuration to create the cluster from; its workers are replaced [default: the
    /// built-in kind-configs/default.yaml]
    #[arg(long, value_name = "FILE")]
    kind_config: Option<PathBuf>,
}

impl NewClusterArgs {
    /// Returns the new cluster, by default named after the run.
    ///
    /// # Errors
    /// Too many nodes, or an invalid kind configuration.
    pub(crate) fn clusters(&self, run: &str, nodes: u16) -> Result<NewClusterSource, Failure> {
        if nodes > MAX_KIND_NODES {
            return Err(Failure::bad_input(format!(
                "failed to create {nodes} nodes: a kind cluster can have at most {MAX_KIND_NODES} nodes for each kubelet\nhelp: an embedded cluster can have more: --backend embedded"
            )));
        }
        let base = KindConfig::load(self.kind_config.as_deref()).map_err(Failure::bad_input)?;
        let name = self.name.as_ref().map_or_else(|| format!("evictlab-{run}"), ToString::to_string);
        Ok(NewClusterSource { name, base, nodes: nodes.into() })
    }

    /// Returns the name, if it is given.
    pub(crate) fn name(&self) -> Option<String> {
        self.name.as_ref().map(ToString::to_string)
    }

    /// Returns `--kind-config` if it is stated: other clusters have names, too.
    pub(crate) fn stated_kind_options(&self) -> Vec<&'static str> {
        stated([("--kind-config", self.kind_config.is_some())])
    }

    /// Returns the names of the stated options.
    pub(crate) fn stated_options(&self) -> Vec<&'static str> {
        stated([("--name", self.name.is_some()), ("--kind-config", self.kind_config.is_some())])
    }
}

/// The kind cluster to reuse, or to keep after the run.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of kind clusters")]
pub(crate) struct KeepArgs {
    /// Use this kept cluster, such as one from `evictlab cluster create`
    #[arg(long = "cluster", value_name = "NAME", add = ArgValueCandidates::new(candidates::kind_clusters), conflicts_with_all = ["name", "kind_config", "keep", "keep_on_failure"])]
    reused: Option<String>,
    /// Keep the cluster after the run
    #[arg(long, conflicts_with = "keep_on_failure")]
    keep: bool,
    /// Keep the cluster if a case is failed, inconclusive or an error
    #[arg(long)]
    keep_on_failure: bool,
}

impl KeepArgs {
    /// Returns the name of the kept cluster to reuse.
    pub(crate) fn reused(&self) -> Option<&str> {
        self.reused.as_deref()
    }

    /// Returns the policy by which a new cluster is kept after the run.
    pub(crate) fn keep(&self) -> KeepPolicy {
        match (self.keep, self.keep_on_failure) {
            (true, _) => KeepPolicy::Always,
            (_, true) => KeepPolicy::OnFailure,
            _ => KeepPolicy::Never,
        }
    }

    /// Returns the names of the stated options.
    pub(crate) fn stated_options(&self) -> Vec<&'static str> {
        stated([
            ("--cluster", self.reused.is_some()),
            ("--keep", self.keep),
            ("--keep-on-failure", self.keep_on_failure),
        ])
    }
}
