//! `evictlab history`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_report::{
    History, RESULTS_DIR, RecordedRun, RecordedRunError, exit_code, history_page, history_table,
    write_private,
};

use evictlab_report::text::shell_quote;

use crate::args::values::whole_number;
use crate::failure::{Failure, write_error};
use crate::messages::print_stderr;
use crate::output::{print, print_json, print_markdown};

/// Maximum depth of runs below a directory: one for each night, with one for each artifact.
const MAX_DEPTH: usize = 2;

/// Show pass rates and changes of cases over many runs
///
/// Reads run directories, or directories that contain them, such as the artifacts of nightly jobs.
/// For each case, kubelet minor and backend: the share of runs that passed or reproduced a known
/// bug, flaky and newly failing cases, and durations. The newest runs of each are compared with its
/// earlier ones by Fisher's exact test: a case fails more or less often if p is at most 0.05, with
/// at least 3 failures. Inconclusive runs and errors do not count.
///
/// Exit status: 0 no case fails more often; 1 with --exit-code, a case is newly failing or fails
/// significantly more often; 2 invalid input.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab history results
  evictlab history nightly/* --recent 7 --output history.html
  evictlab history results --json | jq '.series[] | select(.change.kind != \"stable\")'")]
pub(crate) struct Args {
    /// Run directories, or directories of run directories
    #[arg(value_name = "DIR", default_value = RESULTS_DIR)]
    dirs: Vec<PathBuf>,
    /// Compare the newest N runs of each case with all earlier ones [default: 10, at most half of
    /// its runs]
    #[arg(long, value_name = "N", value_parser = whole_number::<usize>(..))]
    recent: Option<usize>,
    /// Show all cases, also those that passed in every run
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["all", "output"])]
    json: bool,
    /// Write an HTML page
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit with 1 if a case is newly failing or fails significantly more often
    #[arg(long)]
    exit_code: bool,
}

/// Prints or writes the history.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let history = read_history(&args.dirs, args.recent)?;
    match (&args.output, args.json) {
        (Some(path), _) => write_page(&history, path)?,
        (None, true) => print_json(&history)?,
        (None, false) => {
            print_markdown(&history_table(&history, args.all))?;
            let dirs = args.dirs.iter().map(|dir| dir.display().to_string());
            let words: Vec<String> =
                ["evictlab", "history"].map(str::to_owned).into_iter().chain(dirs).collect();
            print_markdown(&format!("\nAs a page: `{} --output history.html`", shell_quote(&words)))?;
        }
    }
    let is_worse = history.series.iter().any(|series| series.change.is_worse());
    Ok(if args.exit_code && is_worse { exit_code::FAILED } else { exit_code::SUCCESS }.into())
}

/// Reads the history of the runs in directories. `recent`: see [`Args::recent`].
pub(crate) fn read_history(dirs: &[PathBuf], recent: Option<usize>) -> Result<History, Failure> {
    if let [dir] = dirs
        && dir == Path::new(RESULTS_DIR)
        && !dir.exists()
    {
        return Err(no_run());
    }
    let mut runs = Vec::new();
    for dir in dirs {
        read_runs(dir, &mut runs)?;
    }
    if runs.is_empty() {
        let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        return Err(Failure::bad_input(format!(
            "failed to find runs in {}\nhelp: name run directories, or a directory that contains some",
            dirs.join(", ")
        )));
    }
    Ok(History::new(&runs, recent))
}

/// The default directory does not have a run.
pub(crate) fn no_run() -> Failure {
    Failure::bad_input(
        "failed to find a run: the directory does not contain one\nhelp: start one with `evictlab run`, or name the directory of a run",
    )
}

/// Writes the history as a page, and prints its path.
pub(crate) fn write_page(history: &History, path: &Path) -> Result<(), Failure> {
    let written = write_private(path, &history_page(history));
    written.map_err(|error| Failure::infrastructure(write_error(&error, "another file with --output")))?;
    print(path.display())
}

/// Reads the run in a directory, or the runs in its subdirectories.
fn read_runs(dir: &Path, runs: &mut Vec<RecordedRun>) -> Result<(), Failure> {
    match RecordedRun::read(dir) {
        Err(RecordedRunError::NoRun { .. }) => read_runs_below(dir, MAX_DEPTH, runs),
        read => {
            runs.push(read.map_err(Failure::bad_input)?);
            Ok(())
        }
    }
}

/// Reads the runs in the subdirectories of a directory in the order of their names, to a depth. A
/// subdirectory without events is passed over; one with invalid events is reported.
fn read_runs_below(dir: &Path, depth: usize, runs: &mut Vec<RecordedRun>) -> Result<(), Failure> {
    let failed = |error| {
        Failure::bad_input(format!(
            "failed to list {}: {error}\nhelp: name run directories, or a directory that contains some",
            dir.display()
        ))
    };
    let mut children = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // `latest` is a link to one of the others.
        if entry.file_type().map_err(failed)?.is_dir() {
            children.push(entry.path());
        }
    }
    children.sort();
    for child in children {
        match RecordedRun::read(&child) {
            Ok(run) => runs.push(run),
            Err(RecordedRunError::NoRun { .. }) if depth > 1 => read_runs_below(&child, depth - 1, runs)?,
            Err(RecordedRunError::NoRun { .. } | RecordedRunError::Empty(_)) => {}
            Err(error) => print_stderr(format_args!("warning: run skipped: {error}")),
        }
    }
    Ok(())
}
