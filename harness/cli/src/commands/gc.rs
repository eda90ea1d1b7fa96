//! `evictlab gc`

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_cluster::{ClusterError, Docker, KnownCluster, Removal, StateDir};

use crate::args::backend::{BackendName, stated};
use crate::args::existing::{AccessArgs, existing_failure};
use crate::args::values::whole_number;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::{print, print_json};
use evictlab_report::words::count;
use evictlab_report::{delete_run, old_runs};
use evictlab_tools::gc::{GcEntry, LeftoverKind, RemovalOutcome};

/// Directory of the runs by default.
const RESULTS: &str = "results";

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
/// Exit status: 0 all leftovers are removed; 2 invalid input, or no cluster has a given name; 4 a
/// leftover could not be removed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab gc --dry-run
  evictlab gc --kept lab
  evictlab gc --backend existing --context staging
  evictlab gc --backend existing --run 7f3a --force
  evictlab gc --results --keep-runs 10
  evictlab gc --dry-run --json")]
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
        default_missing_value = RESULTS,
        conflicts_with_all = ["names", "kept", "run", "backend", "kubeconfig", "context"]
    )]
    results: Option<PathBuf>,
    /// With `--results`: keep the newest N runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole_number::<usize>(..))]
    keep_runs: usize,
    /// Backend to clean up; embedded clusters leave nothing behind
    #[arg(long, short, value_enum, default_value_t = GcBackend::Kind)]
    backend: GcBackend,
    /// Print a JSON array with the outcome of every leftover
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Prints leftovers as they are handled, or all of them as JSON at the end.
struct Log {
    json: bool,
    all: Vec<GcEntry>,
}

impl Log {
    fn new(json: bool) -> Self {
        Self { json, all: vec![] }
    }

    fn add(&mut self, removed: GcEntry, line: impl Display) -> Result<(), Failure> {
        self.all.push(removed);
        self.line(line)
    }

    /// Prints a line that JSON does not need.
    fn line(&self, line: impl Display) -> Result<(), Failure> {
        if self.json { Ok(()) } else { print(line) }
    }

    fn count(&self, outcome: RemovalOutcome, kind: LeftoverKind) -> usize {
        self.all.iter().filter(|one| one.outcome == outcome && one.kind == kind).count()
    }

    /// Ends the output; leftovers that could not be removed are an error.
    fn finish(self) -> Result<ExitCode, Failure> {
        if self.json {
            print_json(&self.all)?;
        }
        let failed = self.all.iter().filter(|one| one.outcome == RemovalOutcome::Failed);
        let failed: Vec<String> = failed.filter_map(|one| one.why.clone()).collect();
        match failed.is_empty() {
            true => Ok(ExitCode::SUCCESS),
            false => Err(infrastructure(failed.join("\n"))),
        }
    }
}

/// Removes the leftovers.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(results) = &args.results {
        return delete_old_runs(results, args);
    }
    match args.backend {
        GcBackend::Kind => {
            let mut options = args.access.stated_options();
            options.extend(stated([("--run", args.run.is_some())]));
            BackendName::Kind.reject_foreign_options(BackendName::Existing, &options)?;
            collect_from_docker(args).await
        }
        GcBackend::Existing => {
            let options = stated([("--kept", args.kept), ("CLUSTER", !args.names.is_empty())]);
            BackendName::Existing.reject_foreign_options(BackendName::Kind, &options)?;
            collect_from_cluster(args).await
        }
    }
}

/// Deletes all but the newest runs in a directory.
fn delete_old_runs(results: &Path, args: &Args) -> Result<ExitCode, Failure> {
    // The default directory does not exist before the first run.
    if results != Path::new(RESULTS) && !results.exists() {
        return Err(bad_input(format!(
            "failed to list {}: the directory does not exist\nhelp: name a directory that contains run directories",
            results.display()
        )));
    }
    let old = old_runs(results, args.keep_runs).map_err(infrastructure)?;
    let mut log = Log::new(args.json);
    for dir in &old {
        let name = dir.display().to_string();
        if args.dry_run {
            let line = format!("{name}: would be deleted");
            log.add(GcEntry::new(LeftoverKind::Directory, name, RemovalOutcome::WouldBeRemoved), line)?;
        } else {
            delete_run(dir).map_err(infrastructure)?;
            let line = format!("{name}: deleted");
            log.add(GcEntry::new(LeftoverKind::Directory, name, RemovalOutcome::Removed), line)?;
        }
    }
    if old.is_empty() {
        log.line(format!("no old runs in {}", results.display()))?;
    }
    log.finish()
}

/// Removes namespaces of dead runs from an existing cluster.
async fn collect_from_cluster(args: &Args) -> Result<ExitCode, Failure> {
    let access = args.access.access();
    let (cluster, mut all) = evictlab_cluster::leftovers(&access).await.map_err(existing_failure)?;
    if let Some(run) = &args.run {
        all.retain(|left| left.run == *run);
    }
    let (mut log, mut removed) = (Log::new(args.json), 0);
    for left in &all {
        let (run, namespaces) = (&left.run, count(left.namespaces, "namespace"));
        let entry = |outcome, namespaces| GcEntry {
            namespaces: Some(namespaces),
            ..GcEntry::new(LeftoverKind::Run, run, outcome)
        };
        match left.left_alone.as_ref().filter(|_| !args.force) {
            Some(why) => {
                let line = format!("run {run}, {namespaces}: left alone, {why}");
                log.add(entry(RemovalOutcome::LeftAlone, left.namespaces).because(why), line)?;
            }
            None if args.dry_run => {
                let line = format!("run {run}, {namespaces}: would be removed");
                log.add(entry(RemovalOutcome::WouldBeRemoved, left.namespaces), line)?;
            }
            None => match evictlab_cluster::collect_leftovers(&access, run).await {
                Ok(namespaces) => {
                    removed += namespaces;
                    let line = format!("run {run}, {}: removed", count(namespaces, "namespace"));
                    log.add(entry(RemovalOutcome::Removed, namespaces), line)?;
                }
                Err(error) => log.all.push(entry(RemovalOutcome::Failed, left.namespaces).because(error)),
            },
        }
    }
    if !args.dry_run || all.is_empty() {
        log.line(format!("{} removed from {cluster}", count(removed, "namespace")))?;
    }
    log.finish()
}

/// Removes kind clusters of dead runs from Docker.
async fn collect_from_docker(args: &Args) -> Result<ExitCode, Failure> {
    let state = StateDir::open().map_err(infrastructure)?;
    let docker = Docker::connect().await.map_err(infrastructure)?;
    let mut all = evictlab_cluster::find(&docker, &state).await.map_err(infrastructure)?;
    let is_known = |name: &str| all.iter().any(|found| found.record.cluster == name);
    let unknown = args.names.iter().find(|name| !is_known(name)).cloned();
    all.retain(|found| args.names.is_empty() || args.names.contains(&found.record.cluster));
    let mut log = Log::new(args.json);
    let entry = |name: &str, outcome| GcEntry::new(LeftoverKind::Cluster, name, outcome);
    if args.dry_run {
        log.line(if all.is_empty() { "no clusters".to_owned() } else { super::cluster::table(&all) })?;
        let found =
            |found: &KnownCluster| entry(&found.record.cluster, RemovalOutcome::Found).because(found.state);
        log.all.extend(all.iter().map(found));
        return finish_clusters(log, unknown);
    }
    state.tidy();
    for name in evictlab_cluster::remove_scratch(&docker).await.map_err(infrastructure)? {
        let line = format!("{name}: removed");
        log.add(GcEntry::new(LeftoverKind::Container, name, RemovalOutcome::Removed), line)?;
    }
    for found in &all {
        let name = &found.record.cluster;
        match evictlab_cluster::collect(&docker, &state, found, args.kept).await {
            Ok(Removal::Removed) => {
                log.add(entry(name, RemovalOutcome::Removed), format!("{name}: removed"))?;
            }
            Ok(Removal::Swept) => {
                let line = format!("{name}: kept; removed leftovers of dead runs from it");
                log.add(entry(name, RemovalOutcome::Kept), line)?;
            }
            Ok(Removal::Left(why)) => {
                let line = format!("{name}: left alone, {why}");
                log.add(entry(name, RemovalOutcome::LeftAlone).because(why), line)?;
            }
            Err(error) => {
                log.all.push(entry(name, RemovalOutcome::Failed).because(format!("{name}: {error}")));
            }
        }
    }
    let removed = log.count(RemovalOutcome::Removed, LeftoverKind::Cluster);
    log.line(format!("{} removed", count(removed, "cluster")))?;
    finish_clusters(log, unknown)
}

/// Ends the output; a name that no cluster has is an error.
fn finish_clusters(log: Log, unknown: Option<String>) -> Result<ExitCode, Failure> {
    let status = log.finish()?;
    match unknown {
        None => Ok(status),
        Some(name) => Err(bad_input(ClusterError::Unknown(name))),
    }
}
