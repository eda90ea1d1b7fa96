//! `evictlab stress`

use std::process::ExitCode;
use std::time::Duration;

use evictlab_fault::parse_duration;
use evictlab_report::clock::Clock;
use evictlab_report::{InterruptStage, KeptEvidence, ReportOptions};
use evictlab_runner::{Repeat, RunRequest, StressLimit};

use crate::args::backend::BackendArg;
use crate::args::output::{FormatArgs, OutputArgs};
use crate::args::selection::SelectionArgs;
use crate::args::target::TargetArgs;
use crate::args::values::whole_number;
use crate::commands::dry_run::{DryRunOptions, dry_run};
use crate::execute::{prepare_and_execute, run_directory};
use crate::failure::Failure;

/// Run cases repeatedly on every node and measure how often they fail
///
/// Every node starts its next run as soon as one ends: with `--nodes 3`, the command takes a third
/// of the time. It reports progress every 5 seconds and every failure immediately, and at the end
/// the failure rate with its confidence interval. It keeps the evidence of every failure, and of
/// the first run of each verdict.
///
/// A failure is a verdict of `failed` or `error`. Inconclusive runs are counted separately.
///
/// Exit status: 0 no failure; 1 a run failed; 2 invalid input; 3 inconclusive; 4 error of the
/// harness, a cluster or the host; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab stress sidecars-are-named --repeat 100 --nodes 3
  evictlab stress sidecars-are-named --backend kind --kubelet ./kubelet --until-failure --timeout 8h
  evictlab stress message --timeout 30m --kubelet v1.31 --kubelet v1.32")]
#[command(group(clap::ArgGroup::new("limit").args(["repeat", "timeout", "until_failure"]).required(true).multiple(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Backend that provides the nodes
    #[arg(long, short, value_enum, default_value_t = BackendArg::Embedded)]
    pub(crate) backend: BackendArg,
    /// Run each case N times on each kubelet
    #[arg(long, short, value_name = "N", value_parser = whole_number::<u32>(1..))]
    repeat: Option<u32>,
    /// Start no run after the first failure
    #[arg(long)]
    until_failure: bool,
    /// Start no run after this time, such as 30m; on the embedded cluster, simulated time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    /// Returns the command that does the same on kind, without the target's arguments.
    fn kind_command(&self) -> Vec<String> {
        // The others only concern the output.
        let Self { selection, backend: _, repeat, until_failure, timeout, target: _, format: _, output: _ } =
            self;
        let mut words = selection.command("stress");
        words.extend(["--backend", "kind"].map(str::to_owned));
        let repeat = repeat.map(|repeat| ["--repeat".to_owned(), repeat.to_string()]);
        let timeout =
            timeout.map(|timeout| ["--timeout".to_owned(), humantime::format_duration(timeout).to_string()]);
        words.extend(repeat.into_iter().chain(timeout).flatten());
        words.extend(until_failure.then(|| "--until-failure".to_owned()));
        words
    }

    async fn request(&self, clock: &Clock) -> Result<RunRequest, Failure> {
        let limit =
            StressLimit { max_attempts: self.repeat, max_time: self.timeout, fail_fast: self.until_failure };
        let (repeat, command) = (Repeat::Stress(limit), self.kind_command());
        self.target.request(self.backend.into(), &self.selection, repeat, clock, command).await
    }
}

/// Runs the cases until a limit is reached. Simulated time requires a paused runtime clock.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.target.dry_run {
        let options =
            DryRunOptions { json: args.format.is_json(), repeat: args.repeat, nodes: args.target.nodes() };
        return dry_run(args.backend.into(), async |clock: &Clock| args.request(clock).await, options).await;
    }
    let options = || {
        Ok(ReportOptions {
            run_dir: run_directory(args.target.output_dir.as_deref())?,
            stdout: Some(args.output.options_as(&args.format)),
            stress: true,
            evidence: KeptEvidence::WithoutRepeats,
            record: None,
            write_baseline: None,
            interrupts: InterruptStage::default(),
        })
    };
    prepare_and_execute(args.backend.into(), async |clock: &Clock| args.request(clock).await, options).await
}
