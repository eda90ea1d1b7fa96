//! Execution of a run with its reports.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{ExitCode, exit};
use std::thread;

use evictlab_report::clock::Clock;
use evictlab_report::exit_code::INTERRUPTED;
use evictlab_report::{BackendName, Finished, Report, ReportError, ReportOptions, Reports, RunDir, reports};
use evictlab_runner::{Interrupt, RunRequest};
use tokio::runtime::Builder;

use crate::failure::{Failure, write_error};
use crate::messages::print_stderr;

/// Maximum number of runs of a case on a kubelet for one conclusive verdict.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// Prepares a run on this backend and executes it. Returns the run's exit status, or
/// [`Failure::interrupted`] if an interrupt arrives during the preparation.
pub(crate) async fn prepare_and_execute(
    backend: BackendName,
    prepare: impl AsyncFnOnce(&Clock) -> Result<RunRequest, Failure>,
    options: impl FnOnce() -> Result<ReportOptions, Failure>,
) -> Result<ExitCode, Failure> {
    // Signals are handled before any resource is created.
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let clock = backend.clock();
    let Some(request) = interrupt.or_none(prepare(&clock)).await else {
        return Err(Failure::interrupted());
    };
    let finished = execute(request?, options()?, vec![], clock, interrupt).await?;
    Ok(finished.exit_code.into())
}

/// Returns the directory that `--output-dir` names, or a new one in `results`, and warns if
/// `results/latest` does not point to it.
pub(crate) fn run_directory(dir: Option<&Path>) -> Result<RunDir, Failure> {
    let run_dir = RunDir::resolve(dir).map_err(|error| {
        Failure::bad_input(write_error(&error, "another directory with --output-dir")).of_option("output-dir")
    })?;
    if let Some(warning) = run_dir.warning() {
        print_stderr(format_args!("warning: {warning}"));
    }
    Ok(run_dir)
}

/// Executes a run with the reports from `options` and the additional reports. Errors of reports
/// are printed to standard error.
pub(crate) async fn execute(
    request: RunRequest,
    options: ReportOptions,
    additional: Vec<Box<dyn Report>>,
    clock: Clock,
    interrupt: Interrupt,
) -> Result<Finished, Failure> {
    let interrupts = interrupt.stage.clone();
    let mut all =
        reports(ReportOptions { interrupts: interrupts.clone(), ..options }).map_err(Failure::bad_input)?;
    all.extend(additional);
    let reports = Reports::start(all, clock).map_err(Failure::infrastructure)?;
    evictlab_runner::run(request, reports.events(), interrupt).await;
    let mut finished = reports.finish();
    // A run that has ended waits for the reader of its output until an interrupt.
    if interrupts.is_interrupted() && !finished.failures.is_empty() {
        finished.exit_code = INTERRUPTED;
    }
    print_failures(&finished);
    Ok(finished)
}

/// Names of the reports on standard output.
const STDOUT_REPORTS: [&str; 3] = ["terminal", "summary", "annotations"];

/// Prints the errors of reports to standard error, that of standard output once.
pub(crate) fn print_failures(finished: &Finished) {
    let mut printed = BTreeSet::new();
    for failure in &finished.failures {
        let text = match &failure.first {
            ReportError::Output(error) if STDOUT_REPORTS.contains(&failure.report) => {
                format!("failed to write to standard output: {error}")
            }
            _ => failure.to_string(),
        };
        if printed.insert(text.clone()) {
            print_stderr(format_args!("error: {text}"));
        }
    }
}

/// Handles signals of a command that has nothing to clean up: the first one prints that the command
/// was interrupted, and exits. `clear` removes what the command shows.
pub(crate) fn exit_on_interrupt(clear: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let runtime = Builder::new_current_thread().build().map_err(Failure::infrastructure)?;
    let exit_after_signal = move || {
        runtime.block_on(interrupt.stop.cancelled());
        clear();
        Failure::interrupted().report();
        exit(INTERRUPTED.into());
    };
    thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(exit_after_signal)
        .map_err(Failure::infrastructure)?;
    Ok(())
}
