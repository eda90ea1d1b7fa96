//! `evictlab schema`

use std::process::ExitCode;

use evictlab_case::json_schema;

use crate::failure::Failure;
use crate::output::print;

/// Print the JSON Schema of case files
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab schema > case.schema.json")]
pub(crate) struct Args {}

/// Prints the schema.
pub(crate) fn run(_: &Args) -> Result<ExitCode, Failure> {
    print(format!("{:#}", json_schema()))?;
    Ok(ExitCode::SUCCESS)
}
