//! `evictlab gc`

use std::process::ExitCode;

use evictlab_runner::cluster::{self, Docker, Removal, StateDir};
use evictlab_runner::report::exit_code;

use crate::failure::Failure;
use crate::output::{count, print};

/// Remove what dead runs left
///
/// Finds the clusters that evictlab made, by its state files and by the records in their nodes. Removes those whose run is gone, and puts
/// the nodes of kept ones back as they were. Never touches a live run's cluster or one that evictlab did not make.
#[derive(clap::Args)]
pub struct Args {
    /// Only these clusters [default: all]
    #[arg(value_name = "CLUSTER")]
    names: Vec<String>,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Remove kept clusters, too
    #[arg(long)]
    kept: bool,
}

/// Collects the garbage.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let infrastructure = |error: String| Failure::new(error, exit_code::INFRASTRUCTURE);
    let state = StateDir::open().map_err(|error| infrastructure(error.to_string()))?;
    let docker = Docker::connect().await.map_err(|error| infrastructure(error.to_string()))?;
    let mut all = cluster::find(&docker, &state).await.map_err(|error| infrastructure(error.to_string()))?;
    all.retain(|found| args.names.is_empty() || args.names.contains(&found.record.cluster));
    if args.dry_run {
        print(if all.is_empty() { "no clusters".to_owned() } else { super::cluster::table(&all) })?;
        return Ok(ExitCode::SUCCESS);
    }
    state.tidy();
    for name in cluster::remove_scratch(&docker).await.map_err(|error| infrastructure(error.to_string()))? {
        print(format!("{name}: removed"))?;
    }
    let (mut removed, mut failed) = (0, Vec::new());
    for found in &all {
        let name = &found.record.cluster;
        match cluster::collect(&docker, &state, found, args.kept).await {
            Ok(Removal::Removed) => {
                removed += 1;
                print(format!("{name}: removed"))?;
            }
            Ok(Removal::Swept) => print(format!("{name}: kept; nothing of a dead run is left in it"))?,
            Ok(Removal::Left(why)) => print(format!("{name}: left alone, {why}"))?,
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    print(format!("{} removed", count(removed, "cluster")))?;
    match failed.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(infrastructure(failed.join("\n"))),
    }
}
