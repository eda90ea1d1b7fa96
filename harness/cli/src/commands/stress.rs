//! `evictlab stress`

use std::process::ExitCode;
use std::time::Duration;

use evictlab_runner::clock::Clock;
use evictlab_runner::report::{Manners, RunDir, Wanted};
use evictlab_runner::schedule::{Limit, Repeat, Request};

use super::backend::Backend;
use super::conduct::prepare_and_conduct;
use super::selection::SelectionArgs;
use super::target::TargetArgs;
use super::time::time;
use crate::failure::{Failure, bad_input};

/// Run a case again and again on every node, and tell how often it fails
///
/// Every node takes the next run as soon as it has ended one, so `--nodes 3` makes it three times as quick. Every 5 seconds it is told how far it is,
/// and every failure as it comes; at the end, the rate of failures with the interval in which the true one lies. The evidence of every failure is
/// kept, and that of the first run of each verdict.
///
/// A failure is a verdict of `failed` or `error`. What is inconclusive is counted apart.
///
/// Exit status: as of `evictlab run`: 0 no failure; 1 a run failed; 2 the input cannot be used; 3 inconclusive; 4 the harness, a cluster or the host
/// went wrong; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab stress sidecars-are-named --runs 100 --nodes 3
  evictlab stress sidecars-are-named --kubelet ./kubelet --until-failure --for 8h
  evictlab stress message --for 30m --kubelet v1.31 --kubelet v1.32")]
#[command(group(clap::ArgGroup::new("limit").args(["runs", "time", "until_failure"]).required(true).multiple(true)))]
pub struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Run each case this often on each kubelet
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Begin no run after this time, such as 30m; on the embedded cluster, of the model's time
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Begin no run after the first failure
    #[arg(long)]
    until_failure: bool,
    /// Where the nodes come from
    #[arg(long, value_enum, default_value_t = Backend::Kind)]
    pub backend: Backend,
    #[command(flatten)]
    target: TargetArgs,
}

impl Args {
    /// The command that does the same on kind, less the target.
    fn on_real_kubelets(&self) -> Vec<String> {
        let mut words = vec!["evictlab".to_owned(), "stress".to_owned()];
        words.extend(self.selection.words());
        let runs = self.runs.map(|runs| ["--runs".to_owned(), runs.to_string()]);
        let time = self.time.map(|time| ["--for".to_owned(), humantime::format_duration(time).to_string()]);
        words.extend(runs.into_iter().chain(time).flatten());
        words.extend(self.until_failure.then(|| "--until-failure".to_owned()));
        words
    }

    /// All that is asked for. Nothing is made.
    async fn request(&self, clock: &Clock) -> Result<Request, Failure> {
        let limit = Limit { runs: self.runs, time: self.time, failure: self.until_failure };
        let (repeat, again) = (Repeat::Stress(limit), self.on_real_kubelets());
        self.target.request(self.backend, &self.selection, repeat, clock, again).await
    }
}

/// Runs the cases until a limit is reached. Where they have a model's time, the runtime's clock must be paused.
pub async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let wanted = || {
        Ok(Wanted {
            run_dir: RunDir::wanted(args.target.output_dir.as_deref()).map_err(bad_input)?,
            stdout: Some(Manners::of_stdout()),
            stress: true,
            record: None,
            write_baseline: None,
        })
    };
    prepare_and_conduct(args.backend, async |clock: &Clock| args.request(clock).await, wanted).await
}
