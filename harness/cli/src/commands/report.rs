//! `evictlab report`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evictlab_runner::report::{PastRun, compare, page};

use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::print;

/// Make one page of a run, to be looked at in a browser; or compare two runs
///
/// The page needs nothing but itself: the verdicts by case and kubelet, and for each case what the node had left and what its containers used over
/// time, the messages taken apart, the checks, the objects and the kubelet's log. A run that goes on, or that was ended half way, is shown as far
/// as it came.
///
/// With --compare: which verdicts, rates and durations differ between two runs, as Markdown.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab report
  evictlab report results/2026-11-21T09-30-12Z --output page.html
  evictlab report --compare results/2026-11-20T03-00-00Z results/latest")]
pub struct Args {
    /// The directory of the run
    #[arg(value_name = "DIR", default_value = "results/latest")]
    dir: PathBuf,
    /// Where to write the page [default: report.html in that directory]; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Say what changed from the run in one directory to that in another
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["dir", "output"])]
    compare: Option<Vec<PathBuf>>,
}

/// Reads the run and writes its page.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some([before, after]) = args.compare.as_deref() {
        let [before, after] = [before, after].map(|dir| PastRun::read(dir).map_err(bad_input));
        print(compare(&before?, &after?).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = PastRun::read(&args.dir).map_err(bad_input)?;
    let page = page(&run).map_err(bad_input)?;
    match &args.output {
        Some(output) if output == Path::new("-") => print(page)?,
        output => {
            let path = output.clone().unwrap_or_else(|| args.dir.join("report.html"));
            fs::write(&path, page)
                .map_err(|error| infrastructure(format!("cannot write {}: {error}", path.display())))?;
            print(path.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
