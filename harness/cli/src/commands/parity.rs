//! `evictlab parity`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use evictlab_case::load;
use evictlab_cluster::images::ImageCatalog;
use evictlab_report::text::count_noun;
use evictlab_report::{
    Agreement, KubeletParity, KubeletResults, RecordedRun, exit_code, parity_details, parity_table,
};
use evictlab_runner::Interrupt;
use evictlab_tools::parity::ModelRun;

use crate::args::selection::SourceArgs;
use crate::args::values::whole_number;
use crate::failure::Failure;
use crate::messages::print_stderr;
use crate::output::{print, print_json, print_markdown};

/// Directory of the results of real kubelets.
const REAL_RESULTS: &str = "results/real";

/// Compare the model with real kubelets, case by case
///
/// Reads the results of real kubelets, runs the same cases on modelled kubelets of the same
/// versions and on the same cgroup version, and compares verdicts and eviction messages. Measured
/// amounts in messages, the order of containers, random names, and the messages of pods that may be
/// evicted or not are not compared. A case that applies to the kubelet, but has no conclusive
/// verdict of a real one, is pending.
///
/// `evictlab parity record` adds the results of runs with --backend kind or existing.
///
/// Exit status: 0 the model agrees; 1 a verdict or a message differs; 2 invalid input; 130
/// interrupted.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  evictlab parity
  evictlab parity results/real/v1.36.2-cgroup-v1.json
  evictlab parity record results/latest"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Results of real kubelets: files, or directories of files
    #[arg(value_name = "RESULTS", default_value = REAL_RESULTS)]
    results: Vec<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    /// Random seed of the model
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<u64>(..))]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    Record(RecordArgs),
}

/// Add runs on real kubelets to the results
///
/// Writes a file for each version of the kubelet and of cgroups, with the verdicts and the messages
/// of each case. Cases that a file contains already are replaced if the runs contain them. Kubelets
/// with a build label, such as v1.36.3+mine, are left out: they may have changes of their own.
///
/// Exit status: 0 written; 2 a directory contains no run, or one of modelled kubelets.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab run --backend kind --kubelet all --repeat 5
  evictlab parity record results/latest")]
struct RecordArgs {
    /// Run directories
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Directory of the results
    #[arg(long, alias = "output-dir", value_name = "DIR", default_value = REAL_RESULTS)]
    real_results: PathBuf,
}

/// Compares the model with real kubelets, or records results. Simulated time requires a paused
/// runtime clock.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(Command::Record(args)) = &args.command {
        return record(args);
    }
    let real = read_results(&args.results)?;
    let cases = load(&args.source.source())?;
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let catalog = Arc::new(ImageCatalog::load(None).map_err(Failure::bad_input)?);
    let progress = |text: &str| print_stderr(text);
    let model = ModelRun { cases: &cases, catalog: &catalog, seed: args.seed, progress: &progress };
    let parities = model.compare(&real, &interrupt).await.map_err(Failure::bad_input)?;
    if interrupt.stop.is_cancelled() {
        return Err(Failure::interrupted());
    }
    if args.json {
        print_json(&parities)?
    } else {
        print_markdown(&render(&parities))?
    }
    let differs = |parity: &KubeletParity| {
        parity.count(Agreement::OtherVerdict) + parity.count(Agreement::OtherMessages) > 0
    };
    Ok(if parities.iter().any(differs) { exit_code::FAILED } else { exit_code::SUCCESS }.into())
}

fn record(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let runs: Result<Vec<RecordedRun>, _> = args.runs.iter().map(|dir| RecordedRun::read(dir)).collect();
    for results in KubeletResults::collect(&runs.map_err(Failure::bad_input)?).map_err(Failure::bad_input)? {
        if results.is_of_own_build() {
            print(format!("{} is left out: it is not the release of a version", results.kubelet))?;
            continue;
        }
        let path = results.update(&args.real_results).map_err(Failure::infrastructure)?;
        print(format!("{} in {}", count_noun(results.cases.len(), "case"), path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read_results(paths: &[PathBuf]) -> Result<Vec<KubeletResults>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_file() {
            all.push(KubeletResults::read(path).map_err(Failure::bad_input)?)
        } else {
            all.extend(KubeletResults::read_dir(path).map_err(Failure::bad_input)?)
        }
    }
    if all.is_empty() {
        Err(Failure::bad_input(format!(
            "failed to find results of real kubelets in {}\nhelp: add those of a run: evictlab parity record RUN",
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        )))
    } else {
        Ok(all)
    }
}

/// Returns the table, and the cases that differ on each kubelet.
fn render(parities: &[KubeletParity]) -> String {
    let mut text = parity_table(parities);
    for parity in parities {
        let details = parity_details(parity);
        if !details.is_empty() {
            text += &format!("\n{} on cgroup {}:\n\n{details}", parity.kubelet, parity.cgroup);
        }
    }
    text
}
