//! `evictlab new`

use std::path::PathBuf;
use std::process::ExitCode;

use evictlab_case::{NewCase, NewCaseError, Source};

use crate::args::selection::SourceArgs;
use crate::failure::{Failure, write_help};
use crate::output::print;

/// Create a case file
///
/// Writes a complete case with memory pressure, to be changed, to the directory of the suites, or
/// without one to the current directory. Does not overwrite files.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab new message/my-case
  evictlab new message/my-case --cases my-suites")]
pub(crate) struct Args {
    /// Suite and name of the case
    #[arg(value_name = "SUITE/CASE")]
    name: NewCase,
    #[command(flatten)]
    source: SourceArgs,
}

/// Creates a case file and prints the next commands.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let dir = match args.source.source() {
        Source::Dir(dir) => dir,
        Source::BuiltIn(_) => PathBuf::new(),
    };
    let path = args.name.write(&dir).map_err(|error| match &error {
        NewCaseError::Write { source, .. } => {
            let help = write_help(source.kind(), "another directory with --cases");
            Failure::bad_input(format!("{error}\n{help}"))
        }
        NewCaseError::Exists(_) => Failure::bad_input(error),
    })?;
    let path = path.display();
    print(format!(
        "created {path}; next:\n\n  evictlab lint {path}\n  evictlab run {path}\n  evictlab run {path} --backend kind --repeat 5"
    ))?;
    Ok(ExitCode::SUCCESS)
}
