//! `evictlab job worker`

use std::path::PathBuf;
use std::process::ExitCode;

use evictlab_case::select::Shard;
use evictlab_runner::{Interrupt, new_run_id};
use evictlab_tools::job::JobWorker;

use super::run;
use crate::args::job::job_failure;
use crate::args::values::whole_number;
use crate::failure::Failure;
use crate::messages::print_stderr;

/// Run one index of a Job: the command of its pods
///
/// Removes what an earlier attempt of the index left, runs the shard of the index, and writes the
/// results to the end of the log, from which `evictlab job collect` reads them.
///
/// Exit status: that of the run, as of `evictlab run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  EVICTLAB_JOB=evictlab/nightly JOB_COMPLETION_INDEX=0 evictlab job worker --indexes 12 -- message")]
pub(super) struct WorkerArgs {
    /// Number of indexes
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>(..))]
    indexes: usize,
    /// Run directory
    #[arg(long, value_name = "DIR", default_value = "results")]
    output_dir: PathBuf,
    /// File for the verdicts, if it exists
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    termination_message: PathBuf,
    /// Selection and options of `evictlab run`, without backend, shard and directory
    #[arg(last = true, value_name = "RUN OPTIONS")]
    run: Vec<String>,
}

/// Parses the arguments of a run in an index.
pub(super) fn run_args(words: &[String], shard: Shard, output_dir: &str) -> Result<run::Args, Failure> {
    let own = ["--backend", "existing", "--shard", &shard.to_string(), "--output-dir", output_dir];
    let words = [words, &own.map(str::to_owned)].concat();
    run::Args::parse(&words).map_err(|error| {
        // Help and version are not errors.
        if !error.use_stderr() {
            error.exit();
        }
        let text = error.to_string();
        let is_hint = |line: &str| line.starts_with("Usage:") || line.starts_with("For more information");
        let problem = text.trim_start_matches("error: ").lines().take_while(|line| !is_hint(line));
        let problem: Vec<_> = problem.filter(|line| !line.is_empty()).collect();
        Failure::bad_input(format!(
            "failed to parse the options of the runs: {}\nhelp: see `evictlab run --help`",
            problem.join("\n")
        ))
    })
}

/// Runs the shard of this pod's index.
pub(super) async fn work(args: WorkerArgs) -> Result<ExitCode, Failure> {
    let worker = JobWorker::of_this_pod(args.indexes).map_err(Failure::bad_input)?;
    let run_args = run_args(&args.run, worker.shard(), &args.output_dir.to_string_lossy())?;
    remove_earlier_attempts(&worker, &run_args).await?;
    let result = run::run(run_args).await;
    if args.output_dir.join("artifacts").is_dir() {
        let reported = worker.report(&args.output_dir, &new_run_id(), &args.termination_message);
        if reported.map_err(|error| {
            Failure::infrastructure(format!("failed to write the results to the log: {error}"))
        })? {
            print_stderr(
                "warning: the evidence is too large for the log, which contains the verdicts only\nhelp: use more --indexes",
            );
        }
    }
    result
}

async fn remove_earlier_attempts(worker: &JobWorker, run_args: &run::Args) -> Result<(), Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let (access, step) = (run_args.access(), |text: &str| print_stderr(text));
    let removal = worker.remove_earlier_attempts(&access, &step);
    let removed = interrupt.or_none(removal).await.ok_or_else(Failure::interrupted)?;
    match removed.map_err(job_failure)? {
        0 => {}
        namespaces => print_stderr(format_args!("removed {namespaces} namespaces of an earlier attempt")),
    }
    Ok(())
}
