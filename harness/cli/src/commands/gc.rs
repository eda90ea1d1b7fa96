//! `evictlab gc`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_cluster::{Docker, Removal, StateDir};

use crate::args::backend::BackendName;
use crate::args::existing::{AccessArgs, existing_failure};
use crate::failure::{Failure, infrastructure};
use crate::output::print;
use evictlab_report::words::count;
use evictlab_report::{delete_run, old_runs};

/// The backends whose resources outlive a killed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GcBackend {
    /// kind clusters in Docker
    Kind,
    /// Namespaces in a cluster that already exists, by its kubeconfig
    Existing,
}

/// Remove leftovers of dead runs
///
/// Finds clusters created by evictlab, by its state files and by the records on their nodes.
/// Removes clusters whose run is dead, and restores the nodes of kept clusters. Never changes the
/// cluster of a live run, or a cluster that evictlab did not create.
///
/// With `--backend existing`: removes the namespaces of dead runs, by their label
/// `evictlab.dev/run`, from any host. A run is dead if its process on this host has ended, or if it
/// has not renewed its Lease for two minutes.
///
/// With `--results`: deletes all but the newest run directories. Directories with other names and
/// runs that may still be going on are kept.
///
/// Exit status: 0 all leftovers are removed; 2 invalid input; 4 a leftover could not be removed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab gc --dry-run
  evictlab gc --kept lab
  evictlab gc --backend existing --context staging
  evictlab gc --backend existing --run 7f3a --force
  evictlab gc --results --keep-runs 10")]
pub(crate) struct Args {
    /// Clusters to remove [default: all]
    #[arg(value_name = "CLUSTER")]
    names: Vec<String>,
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Also remove kept clusters
    #[arg(long)]
    kept: bool,
    /// With `--backend existing`: only the namespaces of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// With `--run`: also if the run may still be active on another host; its cases then end in
    /// errors
    #[arg(long, requires = "run")]
    force: bool,
    /// Delete old runs in this directory instead [default: results]
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "results",
        conflicts_with_all = ["names", "kept", "run", "backend", "kubeconfig", "context"]
    )]
    results: Option<PathBuf>,
    /// With `--results`: keep the newest N runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    keep_runs: usize,
    /// Backend to clean up; embedded clusters leave nothing behind
    #[arg(long, short, value_enum, default_value_t = GcBackend::Kind)]
    backend: GcBackend,
    #[command(flatten)]
    access: AccessArgs,
}

/// Removes the leftovers.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(results) = &args.results {
        return delete_old_runs(results, args.keep_runs, args.dry_run);
    }
    match args.backend {
        GcBackend::Kind => {
            let [kubeconfig, context] = args.access.given();
            let given = [kubeconfig, context, (args.run.is_some(), "--run")];
            BackendName::Kind.reject_foreign_options(BackendName::Existing, &given)?;
            collect_from_docker(args).await
        }
        GcBackend::Existing => {
            let given = [(args.kept, "--kept"), (!args.names.is_empty(), "CLUSTER")];
            BackendName::Existing.reject_foreign_options(BackendName::Kind, &given)?;
            collect_from_cluster(args).await
        }
    }
}

/// Deletes all but the newest runs in a directory.
pub(crate) fn delete_old_runs(results: &Path, keep: usize, dry_run: bool) -> Result<ExitCode, Failure> {
    let old = old_runs(results, keep).map_err(infrastructure)?;
    for dir in &old {
        if dry_run {
            print(format!("{}: would be deleted", dir.display()))?;
        } else {
            delete_run(dir).map_err(infrastructure)?;
            print(format!("{}: deleted", dir.display()))?;
        }
    }
    if old.is_empty() {
        print(format!("no old runs in {}", results.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes namespaces of dead runs from an existing cluster.
async fn collect_from_cluster(args: &Args) -> Result<ExitCode, Failure> {
    let access = args.access.access();
    let (cluster, mut all) = evictlab_cluster::leftovers(&access).await.map_err(existing_failure)?;
    if let Some(run) = &args.run {
        all.retain(|left| left.run == *run);
    }
    let (mut removed, mut failed) = (0, Vec::new());
    for left in &all {
        let (run, namespaces) = (&left.run, count(left.namespaces, "namespace"));
        match left.left_alone.as_ref().filter(|_| !args.force) {
            Some(why) => print(format!("run {run}, {namespaces}: left alone, {why}"))?,
            None if args.dry_run => print(format!("run {run}, {namespaces}: would be removed"))?,
            None => match evictlab_cluster::collect_leftovers(&access, run).await {
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
        false => Err(infrastructure(failed.join("\n"))),
    }
}

/// Removes kind clusters of dead runs from Docker.
async fn collect_from_docker(args: &Args) -> Result<ExitCode, Failure> {
    let state = StateDir::open().map_err(infrastructure)?;
    let docker = Docker::connect().await.map_err(infrastructure)?;
    let mut all = evictlab_cluster::find(&docker, &state).await.map_err(infrastructure)?;
    all.retain(|found| args.names.is_empty() || args.names.contains(&found.record.cluster));
    if args.dry_run {
        print(if all.is_empty() { "no clusters".to_owned() } else { super::cluster::table(&all) })?;
        return Ok(ExitCode::SUCCESS);
    }
    state.tidy();
    for name in evictlab_cluster::remove_scratch(&docker).await.map_err(infrastructure)? {
        print(format!("{name}: removed"))?;
    }
    let (mut removed, mut failed) = (0, Vec::new());
    for found in &all {
        let name = &found.record.cluster;
        match evictlab_cluster::collect(&docker, &state, found, args.kept).await {
            Ok(Removal::Removed) => {
                removed += 1;
                print(format!("{name}: removed"))?;
            }
            Ok(Removal::Swept) => print(format!("{name}: kept; removed leftovers of dead runs from it"))?,
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
