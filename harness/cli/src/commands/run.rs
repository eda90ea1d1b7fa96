//! `evictlab run`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args as _, FromArgMatches};
use clap_complete::engine::ArgValueCompleter;
use evictlab_case::LoadedCase;
use evictlab_cluster::ClusterAccess;
use evictlab_fault::parse_duration;
use evictlab_report::baseline::Baseline;
use evictlab_report::clock::Clock;
use evictlab_report::text::count_noun;
use evictlab_report::{
    BackendName, FlakyResult, InterruptStage, KeptEvidence, LATEST_RUN, RESULTS_DIR, RecordedRun,
    ReportOptions, Unsuccessful, delete_run, old_runs,
};
use evictlab_runner::{Repeat, RunRequest, VanishedCase};

use crate::args::backend::BackendArg;
use crate::args::baseline::{BaselineArgs, RESULTS};
use crate::args::candidates;
use crate::args::kubelets::EarlierKubelets;
use crate::args::output::{FormatArgs, OutputArgs};
use crate::args::selection::{SELECTION, SelectionArgs};
use crate::args::target::TargetArgs;
use crate::args::values::whole_number;
use crate::commands::dry_run::{DryRunOptions, dry_run};
use crate::commands::rerun_failed::{is_case_id, untrusted_run};
use crate::execute::{prepare_and_execute, run_directory};
use crate::failure::Failure;
use crate::messages::print_stderr;

/// Heading of options that repeat cases or end the run.
const REPETITION: &str = "Repetition and limits";

/// Run cases on one or more kubelets
///
/// Runs every selected case on each kubelet, prints a matrix of verdicts and writes the evidence
/// to a run directory. The default backend is an embedded cluster, a model that needs no
/// installation; `--backend kind` runs real kubelets; `--backend existing` runs the cases on a
/// cluster that already exists.
///
/// Verdicts: passed; flaky (passed only at a later try); failed; reproduced (a known bug of this
/// kubelet occurred); fixed (a known bug of this kubelet did not occur); inconclusive (insufficient
/// evidence, with the reason); skipped; error (with the phase).
///
/// Exit status: 0 all passed, flaky, reproduced, fixed or skipped; 1 a case failed, or was flaky
/// with --flaky-result fail; 2 invalid input; 3 inconclusive; 4 error of the harness, a cluster or
/// the host; 5 with --baseline: a verdict changed; 130 interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab run
  evictlab run message limits --kubelet v1.31 --kubelet v1.32
  evictlab run ./mine.yaml --backend kind --kubelet ./kubelet
  evictlab run --backend kind --kubelet all --label-filter '!Disruptive' --baseline
  evictlab run --backend existing --context staging
  evictlab run --rerun-failed --kubelet v1.31
  evictlab run --kubelet all --dry-run")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Run the cases that failed or were inconclusive in an earlier run, or have no verdict there;
    /// without --kubelet, on the kubelets of these cases. Takes no files, programs or images from
    /// the results
    #[arg(long, help_heading = SELECTION, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = LATEST_RUN, conflicts_with_all = ["names", "shard"], add = ArgValueCompleter::new(candidates::complete_run))]
    rerun_failed: Option<PathBuf>,
    /// Backend that provides the nodes
    #[arg(long, short, value_enum, default_value_t = BackendArg::Embedded)]
    pub(crate) backend: BackendArg,
    /// Run each case N times on each kubelet
    #[arg(long, help_heading = REPETITION, short, value_name = "N", default_value_t = 1, value_parser = whole_number::<u32>(1..))]
    repeat: u32,
    /// Repeat the cases until one fails or ends in an error
    #[arg(long, help_heading = REPETITION, conflicts_with = "repeat")]
    until_failure: bool,
    /// Start no case after the first one that fails or ends in an error
    #[arg(long, help_heading = REPETITION)]
    fail_fast: bool,
    /// Try a case that failed or is inconclusive up to N times again; one that then passes is flaky
    #[arg(long, help_heading = REPETITION, value_name = "N", default_value_t = 0, value_parser = whole_number::<u32>(..))]
    retries: u32,
    /// Stop the run after this time, such as 30m; on the embedded cluster, simulated time
    #[arg(long, help_heading = REPETITION, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Write a recording of each case to this directory, for tests of the rules
    #[arg(long, help_heading = RESULTS, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Cases whose evidence is written to the run directory
    #[arg(long, help_heading = RESULTS, value_name = "WHICH", value_enum, default_value_t = EvidenceArg::All)]
    evidence: EvidenceArg,
    #[command(flatten)]
    baseline: BaselineArgs,
    /// After the run, delete all but the newest N runs in `results`
    #[arg(long, help_heading = RESULTS, value_name = "N", conflicts_with = "output_dir", value_parser = whole_number::<u32>(1..))]
    keep_runs: Option<u32>,
    /// Exit status of a run in which a case passed only at a later try: that of a passed or of a
    /// failed case
    #[arg(long, help_heading = REPETITION, value_name = "RESULT", value_enum, default_value_t = FlakyArg::Pass)]
    flaky_result: FlakyArg,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Values of `--evidence`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum EvidenceArg {
    /// All
    All,
    /// Those that failed, were inconclusive or ended in an error: for CI systems that store each
    /// file on its own
    Failures,
}

impl From<EvidenceArg> for KeptEvidence {
    fn from(value: EvidenceArg) -> Self {
        match value {
            EvidenceArg::All => Self::All,
            EvidenceArg::Failures => Self::Failures,
        }
    }
}

/// Values of `--flaky-result`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum FlakyArg {
    Pass,
    Fail,
}

impl From<FlakyArg> for FlakyResult {
    fn from(value: FlakyArg) -> Self {
        match value {
            FlakyArg::Pass => Self::Pass,
            FlakyArg::Fail => Self::Fail,
        }
    }
}

impl Args {
    /// Parses the arguments of a run.
    ///
    /// # Errors
    /// The message for the user.
    pub(crate) fn parse(words: &[String]) -> Result<Self, clap::Error> {
        let command = Self::augment_args(clap::Command::new("evictlab run").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// Returns the access to the existing cluster of the run.
    pub(crate) fn access(&self) -> ClusterAccess {
        self.target.access()
    }

    fn repeat(&self) -> Repeat {
        if self.until_failure { Repeat::UntilFailure } else { Repeat::Times(self.repeat) }
    }

    /// Returns the command that does the same on kind, without the target's arguments.
    fn kind_command(&self) -> Vec<String> {
        // Limits of time are those of the model. The others only concern the results.
        let Self {
            selection,
            repeat,
            until_failure,
            fail_fast,
            retries,
            rerun_failed: _,
            backend: _,
            timeout: _,
            record: _,
            evidence: _,
            baseline: _,
            keep_runs: _,
            flaky_result: _,
            target: _,
            format: _,
            output: _,
        } = self;
        let mut words = selection.command("run");
        words.extend(["--backend", "kind"].map(str::to_owned));
        if *repeat > 1 {
            words.extend(["--repeat".to_owned(), repeat.to_string()]);
        }
        words.extend(until_failure.then(|| "--until-failure".to_owned()));
        words.extend(fail_fast.then(|| "--fail-fast".to_owned()));
        if *retries > 0 {
            words.extend(["--retries".to_owned(), retries.to_string()]);
        }
        words
    }

    /// Selects what an earlier run, in `dir`, has to run again. The run may be untrusted: only
    /// names of cases and versions of kubelets are taken from it.
    fn select_again(&mut self, earlier: Unsuccessful, dir: &Path) -> Result<(), Failure> {
        let backend = BackendName::from(self.backend);
        let kubelets: Option<Vec<String>> = earlier.kubelets.values().cloned().collect();
        let selected = match &kubelets {
            Some(kubelets) if earlier.backend == backend => self.target.default_to_kubelets(kubelets),
            _ => EarlierKubelets::NotSelected,
        };
        let is_id = |case: &String| is_case_id(case);
        let (cases, mut paths): (Vec<_>, Vec<_>) = earlier.cases.into_iter().partition(is_id);
        paths.extend(earlier.paths);
        let untrusted = kubelets.clone().filter(|_| selected == EarlierKubelets::Untrusted);
        if !paths.is_empty() || untrusted.is_some() {
            return Err(untrusted_run(dir, backend, &untrusted.unwrap_or_default(), [cases, paths]));
        }
        if selected != EarlierKubelets::Selected {
            let labels = || earlier.kubelets.keys().cloned().collect();
            let kubelets = kubelets.unwrap_or_else(labels).join(", ");
            let help = match backend {
                BackendName::Existing => "",
                BackendName::Embedded | BackendName::Kind => {
                    "\nhelp: to run on the same kubelets, repeat the --backend and --kubelet options of that run"
                }
            };
            let earlier = earlier.backend;
            print_stderr(format_args!("note: the earlier run was on {kubelets}, backend {earlier}{help}"));
        }
        self.selection.set_names(cases);
        Ok(())
    }

    async fn request(&self, clock: &Clock) -> Result<RunRequest, Failure> {
        self.baseline.check(self.selection.names().iter().map(String::as_str))?;
        let command = self.kind_command();
        let request =
            self.target.request(self.backend.into(), &self.selection, self.repeat(), clock, command).await?;
        let baseline = self.baseline.read()?;
        let kubelets = request.kubelet_labels();
        let is_compared = |baseline: &Baseline, case: &LoadedCase| {
            !baseline.of_case(&case.suite, case.case.name.as_str(), &kubelets).is_empty()
        };
        if let Some(baseline) = baseline.as_ref().filter(|baseline| {
            // The kubelets of an existing cluster are not known yet.
            !kubelets.is_empty() && !request.cases.iter().any(|case| is_compared(baseline, case))
        }) {
            let count = count_noun(baseline.len(), "case");
            print_stderr(format!(
                "warning: the baseline, with {count}, has no verdict of the selected cases on these kubelets"
            ));
        }
        let flaky_result = self.flaky_result.into();
        let vanished = match &baseline {
            Some(baseline) if !self.selection.is_restricted() => vanished(baseline, &request.cases),
            _ => Vec::new(),
        };
        let (retries, fail_fast) = (self.retries, self.fail_fast);
        Ok(RunRequest {
            retries,
            fail_fast,
            timeout: self.timeout,
            baseline,
            vanished,
            flaky_result,
            ..request
        })
    }
}

/// Returns the cases of a baseline that are not among all cases; none if the baseline is that of
/// other cases.
fn vanished(baseline: &Baseline, all: &[Arc<LoadedCase>]) -> Vec<VanishedCase> {
    let is_there = |(suite, name): &(&str, &str)| {
        all.iter().any(|case| case.suite == *suite && case.case.name.as_str() == *name)
    };
    let is_theirs = baseline.cases().any(|case| is_there(&case));
    let gone = baseline.cases().filter(|case| is_theirs && !is_there(case));
    gone.map(|(suite, name)| VanishedCase { suite: suite.to_owned(), name: name.to_owned() }).collect()
}

/// Runs the selected cases. Simulated time requires a paused runtime clock.
pub(crate) async fn run(mut args: Args) -> Result<ExitCode, Failure> {
    if let Some(dir) = args.rerun_failed.take() {
        let earlier = RecordedRun::read(&dir).map_err(Failure::bad_input)?.unsuccessful();
        if earlier.cases.is_empty() && earlier.paths.is_empty() {
            print_stderr(format_args!("no case of {} is to run again", dir.display()));
            return Ok(ExitCode::SUCCESS);
        }
        args.select_again(earlier, &dir)?;
    }
    if args.target.dry_run {
        let repeat = (!args.until_failure).then_some(args.repeat);
        let options = DryRunOptions { json: args.format.is_json(), repeat, nodes: args.target.nodes() };
        return dry_run(args.backend.into(), async |clock: &Clock| args.request(clock).await, options).await;
    }
    let options = || {
        Ok(ReportOptions {
            run_dir: run_directory(args.target.output_dir.as_deref())?,
            stdout: Some(args.output.options_as(&args.format)),
            stress: false,
            evidence: args.evidence.into(),
            record: args.record.clone(),
            write_baseline: args.baseline.write_baseline.clone(),
            interrupts: InterruptStage::default(),
        })
    };
    let code =
        prepare_and_execute(args.backend.into(), async |clock: &Clock| args.request(clock).await, options)
            .await?;
    if let Some(keep) = args.keep_runs {
        for old in old_runs(RESULTS_DIR.as_ref(), keep as usize).map_err(Failure::infrastructure)? {
            delete_run(&old).map_err(Failure::infrastructure)?;
        }
    }
    Ok(code)
}
