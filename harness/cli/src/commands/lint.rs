//! `evictlab lint`

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::process::ExitCode;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use evictlab_case::select::{SelectError, Selection, select};
use evictlab_report::exit_code;
use evictlab_report::text::{count_noun, evictlab_command};
use evictlab_tools::lint::{LintReport, lint_warnings};

use crate::args::candidates;
use crate::args::selection::SourceArgs;
use crate::failure::Failure;
use crate::messages::print_stderr;
use crate::output::{print, print_json};

/// Check case files
///
/// Reads case files as `evictlab run` does, and reports every mistake with its line and column.
/// Runs no case and does not need Docker. Warns of what the model does not run in a case without
/// `on-a-model`, and of expressions that may be too costly.
///
/// Exit status: 0 no problem; 1 at least one problem; 2 unknown suite, case or file.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab lint
  evictlab lint mine.yaml cases/message
  evictlab lint message/sidecars-are-named")]
pub(crate) struct Args {
    /// Suites, cases, `suite/case`, case files, directories, or - for a case from standard input,
    /// as for `evictlab run` [default: all suites]
    #[arg(value_name = "SELECTION", add = ArgValueCompleter::new(complete))]
    names: Vec<String>,
    /// Print the problems and warnings as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// Checks case files.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let selection = Selection { names: args.names.clone(), ..Selection::default() };
    let loaded = match select(&args.source.source(), &selection) {
        Ok(cases) => Ok(cases),
        Err(SelectError::Load(errors)) => Err(errors),
        Err(unknown) => return Err(unknown.into()),
    };
    if args.json {
        print_json(&LintReport::new(&loaded))?;
        return Ok(if loaded.is_ok() { ExitCode::SUCCESS } else { exit_code::FAILED.into() });
    }
    let cases = loaded.map_err(|errors| Failure::invalid_cases(&errors, exit_code::FAILED))?;
    let warnings = lint_warnings(&cases);
    for warning in &warnings {
        print_stderr(format_args!("warning: {warning}\n"));
    }
    let suites: BTreeSet<_> = cases.iter().map(|case| &case.suite).collect();
    let problems = match warnings.len() {
        0 => "no problems".to_owned(),
        warnings => format!("no errors, {}", count_noun(warnings, "warning")),
    };
    print(format!(
        "{} in {}: {problems}",
        count_noun(cases.len(), "case"),
        count_noun(suites.len(), "suite")
    ))?;
    if !args.names.is_empty() {
        let mut words = vec!["evictlab".to_owned(), "run".to_owned()];
        words.extend(args.names.iter().cloned());
        print(format!("run: {}", evictlab_command(&words)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the case files and directories that begin with the word; if no path does, suites and
/// cases.
fn complete(word: &OsStr) -> Vec<CompletionCandidate> {
    let files = candidates::complete_case_file(word);
    if files.is_empty() { candidates::complete_selection(word) } else { files }
}
