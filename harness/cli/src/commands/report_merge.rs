//! `evictlab report merge`

use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_report::{
    Finished, InterruptStage, KeptEvidence, Merge, Report, ReportOptions, RunDir, RunSummary, reports,
};

use crate::args::baseline::BaselineArgs;
use crate::args::output::OutputArgs;
use crate::execute::{print_failures, run_directory};
use crate::failure::Failure;
use crate::messages::print_stderr;

/// Merge shards, machines and attempts into one run
///
/// Writes a run directory with the evidence of all runs, prints the summary, and names overlaps and
/// gaps. Attempts of a case on a kubelet are numbered in the order in which the runs started;
/// `skipped` gives way to a verdict of another run. A case of a run that was killed, or of a shard
/// that is missing, is an error unless another run has its verdict.
///
/// Exit status: that of the merged run, as of `evictlab run`; 2 a directory contains no run, or the
/// runs are of different backends or models.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab report merge shard-*
  evictlab report merge monday tuesday --output-dir both --baseline")]
pub(super) struct MergeArgs {
    /// Run directories
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Directory of the merged run [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    output_dir: Option<PathBuf>,
    #[command(flatten)]
    baseline: BaselineArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Merges the runs and prints the summary.
pub(super) fn merge(args: &MergeArgs) -> Result<ExitCode, Failure> {
    merge_runs(&args.dirs, args.output_dir.as_deref(), &args.baseline, &args.output)
}

/// Merges the runs in these directories and prints the summary.
pub(crate) fn merge_runs(
    dirs: &[PathBuf],
    output_dir: Option<&Path>,
    baseline_args: &BaselineArgs,
    output: &OutputArgs,
) -> Result<ExitCode, Failure> {
    baseline_args.check(iter::empty())?;
    let baseline = baseline_args.read()?;
    let merge = Merge::read(dirs, baseline.as_ref()).map_err(Failure::bad_input)?;
    let run_dir = run_directory(output_dir)?;
    let summary = RunSummary::new(io::stdout(), output.options(), run_dir.clone());
    let write_baseline = baseline_args.write_baseline.clone();
    let finished = write_merged(merge, &run_dir, write_baseline, vec![Box::new(summary)])?;
    Ok(finished.exit_code.into())
}

/// Writes the merged run with the reports of every run and `more`; prints its notes, and the errors
/// of reports.
pub(super) fn write_merged(
    merge: Merge,
    run_dir: &RunDir,
    write_baseline: Option<PathBuf>,
    more: Vec<Box<dyn Report>>,
) -> Result<Finished, Failure> {
    let mut reports = reports(ReportOptions {
        run_dir: run_dir.clone(),
        stdout: None,
        stress: false,
        evidence: KeptEvidence::All,
        record: None,
        write_baseline,
        interrupts: InterruptStage::default(),
    })
    .map_err(Failure::bad_input)?;
    reports.extend(more);
    for note in merge.notes() {
        print_stderr(format_args!("note: {note}"));
    }
    let finished = merge.write(run_dir, reports).map_err(Failure::infrastructure)?;
    print_failures(&finished);
    Ok(finished)
}
