//! A run with its reports, from its first event to its last.

use std::process::ExitCode;

use evictlab_runner::clock::Clock;
use evictlab_runner::report::{Finished, Report, Reports, Wanted, reports};
use evictlab_runner::schedule::{self, Interrupt, Request};

use super::backend::Backend;
use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::tell;

/// Prepares a run on this backend, unless it is interrupted, and carries it out.
pub async fn prepare_and_conduct(
    backend: Backend,
    request: impl AsyncFnOnce(&Clock) -> Result<Request, Failure>,
    wanted: impl FnOnce() -> Result<Wanted, Failure>,
) -> Result<ExitCode, Failure> {
    // Before anything is made.
    let interrupt = Interrupt::listen().map_err(infrastructure)?;
    let clock = backend.clock();
    let Some(request) = interrupt.or_none(request(&clock)).await else {
        return Err(Failure::interrupted());
    };
    let finished = conduct(request?, wanted()?, vec![], clock, interrupt).await?;
    Ok(finished.exit_code.into())
}

/// Runs what is asked for, with the reports that are wanted and these. What of the reports could not be written is told on standard error.
pub async fn conduct(
    request: Request,
    wanted: Wanted,
    more: Vec<Box<dyn Report>>,
    clock: Clock,
    interrupt: Interrupt,
) -> Result<Finished, Failure> {
    let mut all = reports(wanted).map_err(bad_input)?;
    all.extend(more);
    let reports = Reports::start(all, clock).map_err(infrastructure)?;
    schedule::run(request, reports.events(), interrupt).await;
    let finished = reports.finish();
    for failure in &finished.failures {
        tell(format_args!("error: {failure}"));
    }
    Ok(finished)
}
