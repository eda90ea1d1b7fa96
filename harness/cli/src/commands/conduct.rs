//! A run with its reports, from its first event to its last.

use evictlab_runner::clock::Clock;
use evictlab_runner::report::{Finished, Report, Reports, Wanted, reports};
use evictlab_runner::schedule::{self, Interrupt, Request};

use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::tell;

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
