//! `evictlab gc`

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_cluster::{ClusterError, Docker, Removal, StateDir};

use crate::args::backend::{reject_foreign_options, stated};
use crate::args::existing::{AccessArgs, existing_failure};
use crate::args::values::whole_number;
use crate::failure::Failure;
use crate::output::{print, print_json};
use evictlab_report::text::count_noun;
use evictlab_report::{BackendName, RESULTS_DIR, delete_run, old_runs};
use evictlab_tools::gc_report::{GcEntry, LeftoverKind, RemovalOutcome};

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
/// `evictlab.dev/run`, from any host. A run is dead if it has not renewed its Lease for two
/// minutes or, on its own host, if its process has ended and the Lease was not renewed for 30
/// seconds. `--run ID --force` removes the namespaces of one run
/// whatever its state.
///
/// With `--results`: deletes all but the newest run directories. Directories with other names and
/// runs that may still be going on are kept.
///
/// Exit status: 0 all leftovers are removed; 2 invalid input, or no cluster or run has a given
/// name; 4 a leftover could not be removed.
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
    /// With `--run`: whatever the state of the run; if it is active, its cases end in errors
    #[arg(long, requires = "run")]
    force: bool,
    /// Delete old runs in this directory instead [default: results]
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = RESULTS_DIR,
        conflicts_with_all = ["names", "kept", "run", "backend", "kubeconfig", "context"]
    )]
    results: Option<PathBuf>,
    /// With `--results`: keep the newest N runs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = whole_number::<usize>(..),
        requires = "results"
    )]
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
struct Output {
    json: bool,
    entries: Vec<GcEntry>,
}

impl Output {
    fn new(json: bool) -> Self {
        Self { json, entries: vec![] }
    }

    /// Adds an entry, and prints its line.
    fn record(&mut self, entry: GcEntry, line: impl Display) -> Result<(), Failure> {
        self.entries.push(entry);
        self.line(line)
    }

    /// Adds a leftover that could not be removed. [`finish`](Self::finish) prints the errors.
    fn record_failure(&mut self, failed: GcEntry) {
        self.entries.push(failed);
    }

    /// Prints a line that JSON does not need.
    fn line(&self, line: impl Display) -> Result<(), Failure> {
        if self.json { Ok(()) } else { print(line) }
    }

    fn count(&self, outcome: RemovalOutcome, kind: LeftoverKind) -> usize {
        self.entries.iter().filter(|one| one.outcome == outcome && one.kind == kind).count()
    }

    /// Ends the output; leftovers that could not be removed are an error.
    fn finish(self) -> Result<ExitCode, Failure> {
        if self.json {
            print_json(&self.entries)?;
        }
        let failed = self.entries.iter().filter(|one| one.outcome == RemovalOutcome::Failed);
        let failed: Vec<String> = failed.filter_map(|one| one.why.clone()).collect();
        if failed.is_empty() {
            Ok(ExitCode::SUCCESS)
        } else {
            Err(Failure::infrastructure(failed.join("\n")))
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
            reject_foreign_options(BackendName::Kind, BackendName::Existing, &options)?;
            collect_from_docker(args).await
        }
        GcBackend::Existing => {
            let options = stated([("--kept", args.kept), ("CLUSTER", !args.names.is_empty())]);
            reject_foreign_options(BackendName::Existing, BackendName::Kind, &options)?;
            collect_from_cluster(args).await
        }
    }
}

/// Deletes all but the newest runs in a directory.
fn delete_old_runs(results: &Path, args: &Args) -> Result<ExitCode, Failure> {
    // The default directory does not exist before the first run.
    if results != Path::new(RESULTS_DIR) && !results.exists() {
        return Err(Failure::bad_input(format!(
            "failed to list {}: the directory does not exist\nhelp: name a directory that contains run directories",
            results.display()
        )));
    }
    let old = old_runs(results, args.keep_runs).map_err(Failure::infrastructure)?;
    let mut output = Output::new(args.json);
    for dir in &old {
        let name = dir.display().to_string();
        let entry = |outcome| GcEntry::new(LeftoverKind::Directory, &name, outcome);
        if args.dry_run {
            output.record(entry(RemovalOutcome::WouldBeRemoved), format!("{name}: would be deleted"))?;
            continue;
        }
        match delete_run(dir) {
            Ok(()) => output.record(entry(RemovalOutcome::Removed), format!("{name}: deleted"))?,
            Err(error) => output.record_failure(entry(RemovalOutcome::Failed).because(error)),
        }
    }
    if old.is_empty() {
        output.line(format!("no old runs in {}", results.display()))?;
    }
    output.finish()
}

/// Removes namespaces of dead runs from an existing cluster.
async fn collect_from_cluster(args: &Args) -> Result<ExitCode, Failure> {
    let access = args.access.access();
    let (cluster, mut all) = evictlab_cluster::leftovers(&access).await.map_err(existing_failure)?;
    if let Some(run) = &args.run {
        all.retain(|left| left.run == *run);
        if all.is_empty() {
            return Err(Failure::bad_input(format!(
                "failed to find run {run} in {cluster}: no namespace has its label\nhelp: list the runs: evictlab gc --backend existing --dry-run"
            )));
        }
    }
    let (mut output, mut removed) = (Output::new(args.json), 0);
    for left in &all {
        let (run, namespaces) = (&left.run, count_noun(left.namespaces, "namespace"));
        let entry = |outcome, namespaces| GcEntry {
            namespaces: Some(namespaces),
            ..GcEntry::new(LeftoverKind::Run, run, outcome)
        };
        match left.left_alone.as_ref().filter(|_| !args.force) {
            Some(why) => {
                let line = format!("run {run}, {namespaces}: left alone, {why}");
                output.record(entry(RemovalOutcome::LeftAlone, left.namespaces).because(why), line)?;
            }
            None if args.dry_run => {
                let line = format!("run {run}, {namespaces}: would be removed");
                output.record(entry(RemovalOutcome::WouldBeRemoved, left.namespaces), line)?;
            }
            None => match evictlab_cluster::collect_leftovers(&access, run).await {
                Ok(namespaces) => {
                    removed += namespaces;
                    let line = format!("run {run}, {}: removed", count_noun(namespaces, "namespace"));
                    output.record(entry(RemovalOutcome::Removed, namespaces), line)?;
                }
                Err(error) => {
                    output.record_failure(entry(RemovalOutcome::Failed, left.namespaces).because(error));
                }
            },
        }
    }
    if !args.dry_run || all.is_empty() {
        output.line(format!("{} removed from {cluster}", count_noun(removed, "namespace")))?;
    }
    output.finish()
}

/// Removes kind clusters of dead runs from Docker.
async fn collect_from_docker(args: &Args) -> Result<ExitCode, Failure> {
    let state = StateDir::open().map_err(Failure::infrastructure)?;
    let docker = Docker::connect().await.map_err(Failure::infrastructure)?;
    let mut all = evictlab_cluster::find(&docker, &state).await.map_err(Failure::infrastructure)?;
    let is_known = |name: &str| all.iter().any(|found| found.record.cluster == name);
    let unknown = args.names.iter().find(|name| !is_known(name)).cloned();
    all.retain(|found| args.names.is_empty() || args.names.contains(&found.record.cluster));
    let mut output = Output::new(args.json);
    if !args.dry_run {
        state.remove_partial_files();
    }
    remove_scratch_containers(&docker, args.dry_run, &mut output).await?;
    for found in &all {
        if args.dry_run {
            let planned = evictlab_cluster::planned_removal(&state, found, args.kept);
            record_planned(&found.record.cluster, planned, &mut output)?;
        } else {
            let collected = evictlab_cluster::collect(&docker, &state, found, args.kept).await;
            record_collected(&found.record.cluster, collected, &mut output)?;
        }
    }
    let removed = output.count(RemovalOutcome::Removed, LeftoverKind::Cluster);
    if !args.dry_run {
        output.line(format!("{} removed", count_noun(removed, "cluster")))?;
    } else if all.is_empty() {
        output.line("no clusters")?;
    }
    finish_clusters(output, unknown)
}

/// Removes the scratch containers of dead processes, or lists them.
async fn remove_scratch_containers(
    docker: &Docker,
    dry_run: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    for container in
        evictlab_cluster::dead_scratch_containers(docker).await.map_err(Failure::infrastructure)?
    {
        let name = &container.name;
        let entry = |outcome| GcEntry::new(LeftoverKind::Container, name, outcome);
        if dry_run {
            output.record(entry(RemovalOutcome::WouldBeRemoved), format!("{name}: would be removed"))?;
            continue;
        }
        match docker.remove(&container.id).await {
            Ok(()) => output.record(entry(RemovalOutcome::Removed), format!("{name}: removed"))?,
            Err(error) => {
                output.record_failure(entry(RemovalOutcome::Failed).because(format!("{name}: {error}")))
            }
        }
    }
    Ok(())
}

/// Records the outcome that a cluster has without `--dry-run`.
fn record_planned(name: &str, planned: Removal, output: &mut Output) -> Result<(), Failure> {
    let entry = |outcome| GcEntry::new(LeftoverKind::Cluster, name, outcome);
    match planned {
        Removal::Removed => {
            output.record(entry(RemovalOutcome::WouldBeRemoved), format!("{name}: would be removed"))
        }
        Removal::CleanedUp => {
            let line = format!("{name}: would be kept, and leftovers of dead runs removed from it");
            output.record(entry(RemovalOutcome::WouldBeKept), line)
        }
        Removal::Kept(why) => {
            let line = format!("{name}: left alone, {why}");
            output.record(entry(RemovalOutcome::LeftAlone).because(why), line)
        }
    }
}

/// Records the outcome of a cluster.
fn record_collected(
    name: &str,
    collected: Result<Removal, ClusterError>,
    output: &mut Output,
) -> Result<(), Failure> {
    let entry = |outcome| GcEntry::new(LeftoverKind::Cluster, name, outcome);
    match collected {
        Ok(Removal::Removed) => output.record(entry(RemovalOutcome::Removed), format!("{name}: removed")),
        Ok(Removal::CleanedUp) => {
            let line = format!("{name}: kept; removed leftovers of dead runs from it");
            output.record(entry(RemovalOutcome::Kept), line)
        }
        Ok(Removal::Kept(why)) => {
            let line = format!("{name}: left alone, {why}");
            output.record(entry(RemovalOutcome::LeftAlone).because(why), line)
        }
        Err(error) => {
            output.record_failure(entry(RemovalOutcome::Failed).because(format!("{name}: {error}")));
            Ok(())
        }
    }
}

/// Ends the output; a name that no cluster has is an error.
fn finish_clusters(output: Output, unknown: Option<String>) -> Result<ExitCode, Failure> {
    let status = output.finish()?;
    match unknown {
        None => Ok(status),
        Some(name) => Err(Failure::bad_input(ClusterError::Unknown(name))),
    }
}
