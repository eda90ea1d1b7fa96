//! The arguments of every command that makes kind clusters.

use std::path::PathBuf;

use evictlab_runner::cluster::{Base, ClusterName, Clusters};

use crate::failure::{Failure, bad_input};

/// How a new kind cluster is made.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of kind clusters")]
pub struct NewClusterArgs {
    /// The new cluster's name
    #[arg(long, value_name = "NAME")]
    name: Option<ClusterName>,
    /// The kind configuration that the cluster is made from; its workers are replaced [default: the built-in
    /// kind-configs/default.yaml]
    #[arg(long, value_name = "FILE")]
    kind_config: Option<PathBuf>,
}

impl NewClusterArgs {
    /// A new cluster as asked for, with a name from the run's id if none was asked for.
    pub fn clusters(&self, run: &str, nodes: u8) -> Result<Clusters, Failure> {
        let base = Base::load(self.kind_config.as_deref()).map_err(bad_input)?;
        let name = self.name.as_ref().map_or_else(|| format!("evictlab-{run}"), ToString::to_string);
        Ok(Clusters::New { name, base, nodes: nodes.into() })
    }

    /// Which of them were given.
    pub fn given(&self) -> [(bool, &'static str); 2] {
        [(self.name.is_some(), "--name"), (self.kind_config.is_some(), "--kind-config")]
    }
}
