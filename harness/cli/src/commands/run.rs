//! `evictlab run`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use evictlab_runner::clock::Clock;
use evictlab_runner::report::baseline::{self, Baseline};
use evictlab_runner::report::{Manners, RunDir, Wanted};
use evictlab_runner::schedule::{Repeat, Request};

use super::backend::Backend;
use super::conduct::prepare_and_conduct;
use super::selection::SelectionArgs;
use super::target::TargetArgs;
use super::time::time;
use crate::failure::{Failure, bad_input};

/// Run cases on kubelets and judge what they say
///
/// Runs every selected case on each kubelet, prints a matrix of verdicts and leaves the evidence in a run directory. The kubelets are those
/// of an embedded cluster, a model that needs nothing installed; with `--backend kind`, real ones; with `--backend existing`, those of a
/// cluster that is there already.
///
/// Verdicts: passed; failed; reproduced (a known bug showed, as stated for this kubelet); fixed (it should have shown and did
/// not); inconclusive (the evidence does not suffice, and why); skipped; error (in which phase).
///
/// Exit status: 0 all passed, reproduced, fixed or skipped; 1 a case failed; 2 the input cannot be used; 3 inconclusive;
/// 4 the harness, a cluster or the host went wrong; 5 with --baseline: a verdict changed; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab run
  evictlab run message limits --kubelet v1.31 --kubelet v1.32
  evictlab run ./mine.yaml --backend kind --kubelet ./kubelet
  evictlab run --backend kind --kubelet all --label-filter '!Disruptive' --baseline
  evictlab run --backend existing --context staging")]
pub struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Where the nodes come from
    #[arg(long, value_enum, default_value_t = Backend::Embedded)]
    pub backend: Backend,
    /// Run everything this often
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Run everything again and again until a case neither passes nor reproduces its bug
    #[arg(long, conflicts_with = "repeat")]
    until_it_fails: bool,
    /// End the whole run after this time, such as 30m; on the embedded cluster, of the model's time
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
    /// Also write each case as a recording, which tests of the rules can be fed with
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Hold the verdicts against this file, tell what changed, and exit with 5 if something did
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = baseline::DEFAULT)]
    baseline: Option<PathBuf>,
    /// Write the verdicts into this file, for later runs to be held against
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = baseline::DEFAULT)]
    write_baseline: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

impl Args {
    fn repeat(&self) -> Repeat {
        if self.until_it_fails { Repeat::UntilItFails } else { Repeat::Times(self.repeat) }
    }

    /// The command that runs the same on kind, less the target.
    fn on_real_kubelets(&self) -> Vec<String> {
        let mut words = vec!["evictlab".to_owned(), "run".to_owned()];
        words.extend(self.selection.words());
        words.extend(["--backend".to_owned(), "kind".to_owned()]);
        if self.repeat > 1 {
            words.extend(["--repeat".to_owned(), self.repeat.to_string()]);
        }
        if self.until_it_fails {
            words.push("--until-it-fails".to_owned());
        }
        words
    }

    /// All that is asked for. Nothing is made.
    async fn request(&self, clock: &Clock) -> Result<Request, Failure> {
        let again = self.on_real_kubelets();
        let request = self.target.request(self.backend, &self.selection, self.repeat(), clock, again).await?;
        let baseline = self.baseline.as_deref().map(Baseline::read).transpose().map_err(bad_input)?;
        Ok(Request { timeout: self.timeout, baseline, ..request })
    }
}

/// Runs the selected cases. Where they have a model's time, the runtime's clock must be paused.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let wanted = || {
        Ok(Wanted {
            run_dir: RunDir::wanted(args.target.output_dir.as_deref()).map_err(bad_input)?,
            stdout: Some(Manners::of_stdout()),
            stress: false,
            record: args.record.clone(),
            write_baseline: args.write_baseline.clone(),
        })
    };
    prepare_and_conduct(args.backend, async |clock: &Clock| args.request(clock).await, wanted).await
}
