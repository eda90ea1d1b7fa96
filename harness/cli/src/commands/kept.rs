//! The arguments of every command whose kind clusters may outlive it.

use evictlab_runner::cluster::Keep;

/// Which kind clusters outlive the run.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of kind clusters")]
pub struct KeepArgs {
    /// Use this cluster, which was kept or made by `evictlab cluster create`
    #[arg(long = "cluster", value_name = "NAME", conflicts_with_all = ["name", "kind_config", "keep", "keep_on_failure"])]
    reused: Option<String>,
    /// Leave the cluster when the run is over
    #[arg(long, conflicts_with = "keep_on_failure")]
    keep: bool,
    /// Leave the cluster when a case failed, was inconclusive or ended in an error
    #[arg(long)]
    keep_on_failure: bool,
}

impl KeepArgs {
    /// The cluster of before that is to be used.
    pub fn reused(&self) -> Option<&str> {
        self.reused.as_deref()
    }

    /// When a new one outlives the run.
    pub fn keep(&self) -> Keep {
        match (self.keep, self.keep_on_failure) {
            (true, _) => Keep::Always,
            (_, true) => Keep::OnFailure,
            _ => Keep::Never,
        }
    }

    /// Which of them were given.
    pub fn given(&self) -> [(bool, &'static str); 3] {
        [
            (self.reused.is_some(), "--cluster"),
            (self.keep, "--keep"),
            (self.keep_on_failure, "--keep-on-failure"),
        ]
    }
}
