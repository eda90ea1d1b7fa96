//! `evictlab gc`

use std::process::ExitCode;

use evictlab_runner::cluster::{self, Docker, Removal, StateDir};
use evictlab_runner::report::exit_code;

use super::backend::Backend;
use super::existing::{AccessArgs, unusable};
use crate::failure::{Failure, bad_input};
use crate::output::{count, print};

/// Remove what dead runs left
///
/// Finds the clusters that evictlab made, by its state files and by the records in their nodes. Removes those whose run is gone, and puts
/// the nodes of kept ones back as they were. Never touches a live run's cluster or one that evictlab did not make.
///
/// In an existing cluster (`--backend existing`): removes the namespaces of runs that are gone, by their label `evictlab.dev/run`.
///
/// Exit status: 0 all of it is gone; 2 the input cannot be used; 4 something could not be removed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab gc --dry-run
  evictlab gc --kept lab
  evictlab gc --backend existing --context staging")]
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
    /// Where to look
    #[arg(long, value_enum, default_value_t = Backend::Kind)]
    backend: Backend,
    #[command(flatten)]
    access: AccessArgs,
}

/// Collects the garbage.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    match args.backend {
        Backend::Embedded => Err(bad_input("an embedded cluster leaves nothing: it goes with its process")),
        Backend::Kind => {
            args.backend.refuse(Backend::Existing, &args.access.given())?;
            in_docker(args).await
        }
        Backend::Existing => {
            let given = [(args.kept, "--kept"), (!args.names.is_empty(), "the name of a cluster")];
            args.backend.refuse(Backend::Kind, &given)?;
            in_a_cluster(args).await
        }
    }
}

/// What is left in a cluster that was there before.
async fn in_a_cluster(args: &Args) -> Result<ExitCode, Failure> {
    let access = args.access.access();
    let (cluster, all) = cluster::leftovers(&access).await.map_err(unusable)?;
    let (mut removed, mut failed) = (0, Vec::new());
    for left in &all {
        let (run, namespaces) = (&left.run, count(left.namespaces, "namespace"));
        match left.left_alone {
            Some(why) => print(format!("run {run}, {namespaces}: left alone, {why}"))?,
            None if args.dry_run => print(format!("run {run}, {namespaces}: would be removed"))?,
            None => match cluster::collect_leftovers(&access, run).await {
                Ok(namespaces) => {
                    removed += namespaces;
                    print(format!("run {run}, {}: removed", count(namespaces, "namespace")))?;
                }
                Err(error) => failed.push(error.to_string()),
            },
        }
    }
    if !args.dry_run || all.is_empty() {
        print(format!("{} removed from {cluster}", count(removed, "namespace")))?;
    }
    match failed.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Failure::new(failed.join("\n"), exit_code::INFRASTRUCTURE)),
    }
}

/// What is left in Docker.
async fn in_docker(args: &Args) -> Result<ExitCode, Failure> {
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
