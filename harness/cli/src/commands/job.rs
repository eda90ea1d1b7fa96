//! `evictlab job`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use comfy_table::{Table, presets};
use evictlab_cluster::ClusterClient;
use evictlab_report::exit_code;
use evictlab_report::text::count_noun;
use evictlab_tools::job::{
    IndexState, IndexStatus, JobError, JobPhase, JobView, collect, delete, follow_status, read_status,
};

use super::job_manifest::{ManifestArgs, manifest};
use super::job_worker::{WorkerArgs, work};
use super::report_merge::merge_runs;
use crate::args::baseline::BaselineArgs;
use crate::args::existing::{AccessArgs, existing_failure};
use crate::args::job::{JobNameArgs, job_failure};
use crate::args::output::OutputArgs;
use crate::failure::Failure;
use crate::messages::print_stderr;
use crate::output::{print, print_json, print_table};

/// Run cases as a Kubernetes Job in the cluster that is tested
///
/// Each index of the Job runs one shard of the selection with `--backend existing`, in a pod that
/// is not scheduled to the nodes under test. Indexes share these nodes by Leases, and each takes
/// the next free ones.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab job manifest message --node-selector pool=evictions --allow-disruption | kubectl apply -f -
  evictlab job manifest --node-selector pool=evictions --indexes 12 --parallelism 3 --apply
  evictlab job watch
  evictlab job collect results/nightly --baseline
  evictlab job delete")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Manifest(Box<ManifestArgs>),
    Watch(WatchArgs),
    Collect(CollectArgs),
    Delete(DeleteArgs),
    Worker(WorkerArgs),
}

/// Show the progress of a Job
///
/// Prints a line for each change of an index until the Job has ended, then a table.
///
/// Exit status: 0 all indexes succeeded, or printed once; 1 an index failed; 2 the Job does not
/// exist; 4 the cluster does not answer, or denies access.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab job watch --name nightly
  evictlab job watch --once --json | jq '.indexes[] | select(.state == \"failed\")'")]
struct WatchArgs {
    #[command(flatten)]
    job: JobNameArgs,
    /// Print the current state and exit
    #[arg(long)]
    once: bool,
    /// Print a JSON object instead of a table; without --once, one object per line after each
    /// change
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Collect the results of a Job, and merge them into one run
///
/// Reads the results from the logs of the pods, as soon as each has ended, and writes them to
/// DIR/index-N. At the end of the Job, DIR/merged is one run with the evidence of all indexes, as
/// of `evictlab report merge`: a case of an index without results is an error.
///
/// Exit status: that of the merged run, as of `evictlab run`; 2 the Job does not exist, or DIR is
/// not empty; 4 no index has results.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab job collect results/nightly
  evictlab job collect results/nightly --name nightly --baseline")]
struct CollectArgs {
    /// Directory of the results
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    job: JobNameArgs,
    /// Collect the indexes that have ended, and do not wait for the others
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    baseline: BaselineArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// Delete a Job with everything that it created
///
/// Ends the runs of the Job, which delete their namespaces; deletes what killed runs left; and
/// deletes the Job's own objects, and its namespace if the manifest created it and nothing else is
/// in it. Collect the results before: they are deleted with the pods.
///
/// Exit status: 0 deleted; 2 nothing of the Job exists; 4 the cluster does not answer, or denies
/// access.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab job delete --name nightly")]
struct DeleteArgs {
    #[command(flatten)]
    job: JobNameArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// Executes the subcommand.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Manifest(args) => manifest(&args).await,
        Command::Worker(args) => work(args).await,
        Command::Watch(args) => watch(&args).await,
        Command::Collect(args) => collect_results(&args).await,
        Command::Delete(args) => {
            let (job, _) = args.job.job();
            let step = |text: &str| print_stderr(text);
            delete(&reach(&args.access).await?, &job, &step).await.map_err(job_failure)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn reach(access: &AccessArgs) -> Result<ClusterClient, Failure> {
    access.access().connect().await.map_err(existing_failure)
}

async fn watch(args: &WatchArgs) -> Result<ExitCode, Failure> {
    let (job, _) = args.job.job();
    let cluster = reach(&args.access).await?;
    if args.once {
        let view = read_status(&cluster, &job).await.map_err(job_failure)?;
        if args.json {
            print_json(&view)?
        } else {
            print_table(&table(&view))?
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut last: Vec<IndexStatus> = Vec::new();
    let followed = follow_status::<WatchFailure>(&cluster, &job, |view| {
        if args.json {
            return Ok(print(serde_json::to_string(view).map_err(Failure::infrastructure)?)?);
        }
        for index in view.indexes.iter().filter(|index| !last.contains(index) && index.pod.is_some()) {
            print(line(index))?;
        }
        last.clone_from(&view.indexes);
        Ok(())
    });
    let view = followed.await.map_err(|WatchFailure(failure)| failure)?;
    if !args.json {
        print(format_args!("\n{}", table(&view)))?;
    }
    Ok(if view.phase == JobPhase::Complete { exit_code::SUCCESS } else { exit_code::FAILED }.into())
}

/// End of a watch, by the cluster or by the output.
struct WatchFailure(Failure);

impl From<JobError> for WatchFailure {
    fn from(error: JobError) -> Self {
        Self(job_failure(error))
    }
}

impl From<Failure> for WatchFailure {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

/// A change of an index, in one line.
fn line(index: &IndexStatus) -> String {
    let IndexStatus { index: number, state, attempts, .. } = index;
    let place = index.node.as_ref().filter(|_| *state == IndexState::Running);
    let place = place.map(|node| format!(" on {node}")).unwrap_or_default();
    let attempt = if *attempts > 1 { format!(", attempt {attempts}") } else { String::new() };
    match details(index).as_str() {
        "" => format!("index {number}: {state}{place}{attempt}"),
        details => format!("index {number}: {state}{place}{attempt}: {details}"),
    }
}

/// Verdicts of an index, or the reason that it has none.
fn details(index: &IndexStatus) -> String {
    let report = index.report.as_ref();
    let verdicts = report.map(|report| {
        let counts = report.verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}"));
        counts.collect::<Vec<_>>().join(", ")
    });
    verdicts.or_else(|| index.reason.clone()).unwrap_or_default()
}

fn table(view: &JobView) -> String {
    let mut table = Table::new();
    let columns = ["INDEX", "STATE", "ATTEMPTS", "POD", "NODE", "VERDICTS"];
    table.load_style(presets::NOTHING).set_header(columns);
    for index in &view.indexes {
        table.add_row([
            index.index.to_string(),
            index.state.to_string(),
            index.attempts.to_string(),
            index.pod.clone().unwrap_or_default(),
            index.node.clone().unwrap_or_default(),
            details(index),
        ]);
    }
    let counts = view.counts().into_iter().map(|(state, count)| format!("{count} {state}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let reason = view.reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
    format!("{}\n\njob {}: {counts}{reason}", table.trim_fmt(), view.job)
}

async fn collect_results(args: &CollectArgs) -> Result<ExitCode, Failure> {
    let (job, _) = args.job.job();
    let cluster = reach(&args.access).await?;
    let step = |text: &str| print_stderr(text);
    let collected = collect(&cluster, &job, &args.dir, !args.no_wait, &step).await.map_err(job_failure)?;
    if collected.runs.is_empty() {
        return Err(Failure::infrastructure(format!(
            "failed to collect the results of job {job}: none of its indexes has results\nhelp: see its pods with `kubectl --namespace {} get pods`, and their logs",
            job.namespace
        )));
    }
    if !collected.missing.is_empty() {
        let missing = collected.missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let indexes = count_noun(collected.missing.len(), "index");
        print_stderr(format_args!("note: without results: {indexes}: {missing}"));
    }
    let runs: Vec<PathBuf> = collected.runs.into_values().collect();
    let merged: &Path = &args.dir.join("merged");
    merge_runs(&runs, Some(merged), &args.baseline, &args.output)
}
