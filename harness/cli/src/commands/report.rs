//! `evictlab report`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::history::{no_run, read_history, write_page};
use super::report_merge::{MergeArgs, merge};
use clap_complete::engine::ArgValueCompleter;
use evictlab_report::{
    EvidenceBase, LATEST_RUN, RecordedRun, RecordedRunError, ReportError, compare, markdown_page, page,
    replace_private, write_private,
};

use crate::args::candidates;
use crate::failure::{Failure, write_error};
use crate::output::{print, print_markdown};
use crate::profile::removal;

/// Render a run as an HTML page, compare two runs, or merge runs
///
/// The page is self-contained and at most 4 MB for all cases on all kubelets: the verdicts by case
/// and kubelet, with a search, and for each case a timeline of the available and used amounts, the
/// parsed messages, the checks, the objects and the kubelet log, as far as there is room for them,
/// cases in need of attention first; and links to the files of the evidence. A run that is in
/// progress or was aborted is rendered up to that point.
///
/// With --compare: prints the differences in verdicts, rates and durations as Markdown or JSON;
/// writes a page if the name of the file ends in .html.
///
/// Exit status: 0 written; 1 with --exit-code, a case changed or is gone; 2 the directory contains
/// no run.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  evictlab report
  evictlab report results/2026-11-21T09-30-12Z --output page.html
  evictlab report --history results
  evictlab report --compare results/2026-11-20T03-00-00Z results/latest
  evictlab report merge shard-*"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Run directory
    #[arg(value_name = "DIR", default_value = LATEST_RUN, add = ArgValueCompleter::new(candidates::complete_run))]
    dir: PathBuf,
    /// File to write, or `-` for standard output [default: report.html in the run directory; with
    /// --compare, standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the changes from the run in BEFORE to the run in AFTER
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with = "dir")]
    compare: Option<Vec<PathBuf>>,
    /// Write the history of the runs in these directories as a page, as `evictlab history` does
    /// [default of --output: history.html]
    #[arg(long, num_args = 1.., value_name = "DIR", conflicts_with_all = ["dir", "compare"])]
    history: Option<Vec<PathBuf>>,
    /// With --compare: print JSON
    #[arg(long, requires = "compare")]
    json: bool,
    /// With --compare: exit with 1 if a case changed, or is only in the run before
    #[arg(long, requires = "compare")]
    exit_code: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    Merge(MergeArgs),
}

/// Writes the page, prints the comparison, or merges runs.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(Command::Merge(args)) = &args.command {
        return merge(args);
    }
    if let Some([before, after]) = args.compare.as_deref() {
        return compare_runs(args, before, after);
    }
    reject_options_of_comparison(args)?;
    if let Some(dirs) = &args.history {
        let path = args.output.as_deref().unwrap_or(Path::new("history.html"));
        write_page(&read_history(dirs, None)?, path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = RecordedRun::read(&args.dir).map_err(|error| match error {
        RecordedRunError::NoRun { .. } if args.dir == Path::new(LATEST_RUN) && !args.dir.exists() => no_run(),
        error => Failure::bad_input(error),
    })?;
    let base = match args.output.as_deref() {
        Some(output) if output == Path::new("-") => EvidenceBase::none(),
        Some(output) => EvidenceBase::relative(&args.dir, output.parent().unwrap_or(Path::new("."))),
        None => EvidenceBase::relative(&args.dir, &args.dir),
    };
    let page = page(&run, &base).map_err(Failure::bad_input)?;
    match &args.output {
        Some(output) if output == Path::new("-") => print(page)?,
        Some(output) => {
            write(output, &page)?;
            print(output.display())?;
        }
        None => {
            let path = args.dir.join("report.html");
            written(replace_private(&path, &page))?;
            print(path.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Rejects options that only apply to a comparison. clap does not, as DIR and `--history` conflict
/// with `--compare`.
fn reject_options_of_comparison(args: &Args) -> Result<(), Failure> {
    let given = [(args.json, "--json"), (args.exit_code, "--exit-code")];
    // A profile states them for the comparisons only.
    match given.iter().find(|(given, option)| *given && removal(option).is_none()) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::bad_input(format!(
            "{option} needs --compare\nhelp: name two runs: --compare BEFORE AFTER, or remove {option}"
        ))),
    }
}

/// Writes a file that `--output` names.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    written(write_private(path, text))
}

fn written(result: Result<(), ReportError>) -> Result<(), Failure> {
    result.map_err(|error| Failure::infrastructure(write_error(&error, "another file with --output")))
}

fn compare_runs(args: &Args, before: &Path, after: &Path) -> Result<ExitCode, Failure> {
    let [before, after] = [before, after].map(|dir| {
        RecordedRun::read(dir).map_err(|error| Failure::bad_input(error).of_value("compare", dir.display()))
    });
    let compared = compare(&before?, &after?);
    let is_page = args.output.as_ref().is_some_and(|path| path.extension().is_some_and(|end| end == "html"));
    let text = if args.json {
        serde_json::to_string_pretty(&compared).map_err(Failure::infrastructure)?
    } else if is_page {
        markdown_page("evictlab comparison", &format!("# Comparison of two runs\n\n{}", compared.render()))
    } else {
        compared.render().trim_end().to_owned()
    };
    match &args.output {
        Some(output) if output != Path::new("-") => {
            write(output, &(text + "\n"))?;
            print(output.display())?;
        }
        _ if args.json => print(text)?,
        _ => print_markdown(&text)?,
    }
    let is_worse = !compared.changed.is_empty() || !compared.only_before.is_empty();
    Ok(ExitCode::from(u8::from(args.exit_code && is_worse)))
}
