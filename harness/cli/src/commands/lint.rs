//! `evictlab lint`

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap_complete::engine::ArgValueCompleter;
use evictlab_case::{load, load_paths};
use evictlab_report::exit_code;
use evictlab_report::words::{count, shell_quote};
use evictlab_runner::model_limits;
use evictlab_tools::lint::LintReport;

use crate::args::candidates;
use crate::args::selection::SourceArgs;
use crate::failure::Failure;
use crate::output::{print, print_json, print_stderr};

/// Check case files
///
/// Reads case files as `evictlab run` does, and reports every mistake with its line and column.
/// Runs no case and does not need Docker. Warns of what the model does not run in a case without
/// `on-a-model`.
///
/// Exit status: 0 no problem; 1 at least one problem.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab lint
  evictlab lint mine.yaml cases/message")]
pub(crate) struct Args {
    /// Case files, directories, or - for a case from standard input [default: all suites]
    #[arg(value_name = "PATH", add = ArgValueCompleter::new(candidates::complete_case_file))]
    paths: Vec<PathBuf>,
    /// Print the problems and warnings as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// Checks case files.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let loaded = if args.paths.is_empty() { load(&args.source.source()) } else { load_paths(&args.paths) };
    if args.json {
        print_json(&LintReport::new(&loaded))?;
        return Ok(if loaded.is_ok() { ExitCode::SUCCESS } else { exit_code::FAILED.into() });
    }
    let cases = loaded.map_err(|errors| Failure::invalid_cases(&errors, exit_code::FAILED))?;
    for limit in cases.iter().flat_map(|case| model_limits(case)) {
        print_stderr(format_args!("warning: {limit}\n"));
    }
    let suites: BTreeSet<_> = cases.iter().map(|case| &case.suite).collect();
    print(format!("{} in {}: no problems", count(cases.len(), "case"), count(suites.len(), "suite")))?;
    if !args.paths.is_empty() {
        let mut words = vec!["evictlab".to_owned(), "run".to_owned()];
        words.extend(args.paths.iter().map(|path| path.display().to_string()));
        print(format!("run: {}", shell_quote(&words)))?;
    }
    Ok(ExitCode::SUCCESS)
}
