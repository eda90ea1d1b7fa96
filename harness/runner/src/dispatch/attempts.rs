//! Attempts of one case on its node: repetition for rates, and retries.

use evictlab_case::LoadedCase;
use evictlab_judge::{CaseResult, InconclusiveReason, Phase, known_bug, over_runs};
use evictlab_report::{CaseId, RunEventKind};

use crate::case_runner::runner::{CaseOutcome, CaseRunner};
use crate::dispatch::run::RunContext;
use crate::lease::exclusivity::Exclusivity;
use crate::lease::leased_node::LeasedNode;

/// Maximum number of runs of a case whose pressure is faster than the node's statistics. Each run
/// has half the speed of the one before.
const MAX_SPEED_ATTEMPTS: u32 = 4;

impl RunContext {
    /// Runs a case on its node as often as its `rate` states, else once.
    pub(super) async fn run_for_rate(
        &self,
        case: &LoadedCase,
        id: &CaseId,
        leased: &LeasedNode,
        exclusivity: Exclusivity,
    ) -> CaseOutcome {
        let Some(rate) = &case.case.expect.rate else {
            return self.run_with_retries(case, id, leased, exclusivity).await;
        };
        let (mut results, mut evidence) = (vec![], None);
        for run in 1..=rate.runs {
            let outcome = self.run_with_retries(case, id, leased, exclusivity).await;
            // The evidence of the first run with a deviation is kept, else that of the first run.
            if evidence.is_none() || !is_all_right(&outcome.result) && results.iter().all(is_all_right) {
                evidence = outcome.evidence;
            }
            if let (Some(counted), true) = (&outcome.result.rate, run < rate.runs) {
                let text = format!("run {run} of {}: {counted}", rate.runs);
                self.events.send(RunEventKind::CaseStep { id: id.clone(), phase: Phase::Judge, text });
            }
            let is_counted = outcome.result.rate.is_some();
            results.push(outcome.result);
            if !is_counted || self.cancel.is_cancelled() {
                break;
            }
        }
        let bug = known_bug(&case.case, &leased.node.version);
        CaseOutcome { result: over_runs(bug, results), evidence }
    }

    /// Runs a case on its node. Repeats it more slowly while its pressure is faster than the node's
    /// statistics, and once if the threshold was not reached.
    async fn run_with_retries(
        &self,
        case: &LoadedCase,
        id: &CaseId,
        leased: &LeasedNode,
        exclusivity: Exclusivity,
    ) -> CaseOutcome {
        let mut attempts = 1;
        loop {
            let runner = CaseRunner {
                run: &self.request.run,
                case,
                id: id.clone(),
                leased,
                exclusivity,
                faults: self.request.backend.faults().unwrap_or_default(),
                host: &self.host,
                events: &self.events,
                cancel: &self.cancel,
            };
            let outcome = runner.run().await;
            let doubt = outcome.result.doubt;
            let retry = match doubt {
                Some(InconclusiveReason::StatsOutrun) if attempts < MAX_SPEED_ATTEMPTS => {
                    "retrying more slowly"
                }
                // Memory that the node freed after the measurement lowers the effective threshold;
                // the second measurement does not include it any more.
                Some(InconclusiveReason::ThresholdNotReached) if attempts == 1 => "retrying",
                _ => return outcome,
            };
            if self.cancel.is_cancelled() {
                return outcome;
            }
            attempts += 1;
            if doubt == Some(InconclusiveReason::StatsOutrun) {
                leased.slow_down().await;
            }
            let text = format!("{retry}: {}", outcome.result.why);
            self.events.send(RunEventKind::CaseStep { id: id.clone(), phase: Phase::Lease, text });
        }
    }
}

fn is_all_right(result: &CaseResult) -> bool {
    result.rate.as_ref().is_some_and(|rate| rate.right == rate.of)
}
