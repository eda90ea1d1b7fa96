//! `evictlab mutants`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use evictlab_case::select::{Selection, select};
use evictlab_embedded::Defect;
use evictlab_report::exit_code;
use evictlab_tools::mutants::{self, DefectInfo, MatrixOptions};

use crate::args::candidates;
use crate::args::kubelets::KubeletArgs;
use crate::args::output::ProgressArgs;
use crate::args::selection::SourceArgs;
use crate::args::values::whole_number;
use crate::execute::{exit_on_interrupt, run_directory};
use crate::failure::Failure;
use crate::output::{print, print_json, print_markdown};

/// Test the cases on simulated kubelets that have a defect
///
/// A mutant is a simulated kubelet with one defect, such as a missing annotation or a limit that is
/// enforced at half its value. A case kills a mutant if its verdict there is `failed`. A mutant
/// that no case kills shows a gap in the catalogue.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the defects
    #[command(after_help = "Examples:
  evictlab mutants list
  evictlab run message --defect message-names-only-first")]
    List {
        /// Print a JSON array instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Run the cases on every mutant and print which mutants they kill
    ///
    /// Runs every case on the kubelet without a defect first, and leaves out cases that do not pass
    /// there. Then runs the cases on each mutant until one kills it, and cases without a kill on
    /// further mutants. Writes mutants.json and mutants.html to the run directory.
    ///
    /// Exit status: 0 every mutant is killed, and every case kills a mutant or states why none can
    /// fail it (`no-mutant` in the case file); 1 otherwise; 2 invalid input; 4 error of the
    /// harness.
    Run(Box<RunArgs>),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab mutants run
  evictlab mutants run ranking --kubelet v1.33
  evictlab mutants run --defect limits-halved --full
  evictlab mutants run --kubelet all --output-dir mutants")]
struct RunArgs {
    /// Suites, cases, `suite/case`, or case files [default: all cases]
    #[arg(value_name = "SELECTION", add = ArgValueCompleter::new(candidates::complete_selection))]
    names: Vec<String>,
    /// The former option for selections.
    #[arg(long = "case", hide = true, value_name = "CASE", value_delimiter = ',')]
    named_cases: Vec<String>,
    /// Defect (repeatable, or separated by commas) [default: all defects]
    #[arg(long = "defect", value_name = "NAME", value_delimiter = ',', add = ArgValueCandidates::new(candidates::defects))]
    defects: Vec<Defect>,
    /// Run every case on every mutant, even if another case has killed the mutant
    #[arg(long)]
    full: bool,
    /// Random seed; runs with the same seed are identical
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<u64>(..))]
    seed: u64,
    /// Run directory [default: results/TIME]
    #[arg(long, value_name = "DIR", env = "ARTIFACTS_DIR")]
    output_dir: Option<PathBuf>,
    /// Print the matrix as JSON instead of the summary
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kubelets: KubeletArgs,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Executes the subcommand.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::List { json: true } => {
            print_json(&Defect::ALL.iter().map(DefectInfo::from).collect::<Vec<_>>())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::List { json: false } => {
            print(mutants::list(Defect::ALL).trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(args) => run_matrix(args),
    }
}

fn run_matrix(args: &RunArgs) -> Result<ExitCode, Failure> {
    let catalog = args.kubelets.image_catalog()?;
    let names = [&args.names[..], &args.named_cases].concat();
    let selection = Selection { names, ..Selection::default() };
    let all = args.defects.is_empty();
    let options = MatrixOptions {
        cases: select(&args.source.source(), &selection)?,
        kubelets: args.kubelets.modelled(&catalog)?,
        defects: if all { Defect::ALL.to_vec() } else { args.defects.clone() },
        catalog: Arc::new(catalog),
        seed: args.seed,
        full: args.full,
    };
    let progress = Arc::new(args.progress.status_line());
    let shown = progress.clone();
    // The cases run in this process.
    exit_on_interrupt(move || shown.clear())?;
    let dir = run_directory(args.output_dir.as_deref())?;
    let show = |finished: usize, total: usize| progress.count(finished, total, "mutants");
    let matrix = mutants::run(&options, &show);
    progress.clear();
    let matrix = matrix.map_err(Failure::infrastructure)?;
    let json = serde_json::to_string_pretty(&matrix).map_err(Failure::infrastructure)?;
    dir.write("mutants.json", &json).map_err(Failure::infrastructure)?;
    dir.write("mutants.html", &mutants::page(&matrix)).map_err(Failure::infrastructure)?;
    let page = dir.path().join("mutants.html");
    if args.json {
        print(&json)?
    } else {
        print_markdown(&format!("{}\n\nMatrix: {}", mutants::summary(&matrix), page.display()))?
    }
    // A selection of defects cannot show that a case kills none.
    let is_complete = if all { matrix.is_complete() } else { matrix.survivors().next().is_none() };
    Ok(if is_complete { exit_code::SUCCESS } else { exit_code::FAILED }.into())
}
