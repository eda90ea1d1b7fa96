//! `evictlab lint`

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use evictlab_runner::case::{load, load_paths};
use evictlab_runner::report::exit_code;

use super::selection::SourceArgs;
use crate::failure::Failure;
use crate::output::{count, print};

/// Check case files
///
/// Reads them as `evictlab run` does, and tells every mistake with its line and column. Nothing is run, and no Docker is needed.
///
/// Exit status: 0 nothing is wrong; 1 something is.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab lint
  evictlab lint mine.yaml cases/message")]
pub struct Args {
    /// Case files, and folders of them; all suites if none is given
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
}

/// Checks case files.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let loaded = if args.paths.is_empty() { load(&args.source.source()) } else { load_paths(&args.paths) };
    let cases = loaded.map_err(|errors| Failure::of_cases(&errors, exit_code::FAILED))?;
    let suites: BTreeSet<_> = cases.iter().map(|case| &case.suite).collect();
    print(format!("{} in {}: nothing is wrong", count(cases.len(), "case"), count(suites.len(), "suite")))?;
    Ok(ExitCode::SUCCESS)
}
