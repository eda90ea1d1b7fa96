//! `evictlab schema`

use std::process::ExitCode;

use evictlab_runner::case::json_schema;

use crate::failure::Failure;
use crate::output::print;

/// Print the JSON Schema of a case file
#[derive(clap::Args)]
pub struct Args {}

/// Prints the schema.
pub fn run(_: &Args) -> Result<ExitCode, Failure> {
    print(format!("{:#}", json_schema()))?;
    Ok(ExitCode::SUCCESS)
}
