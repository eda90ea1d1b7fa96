//! Tries of one attempt of a case on its node: runs of a rate, and retries.

use std::fmt;
use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_judge::{CaseResult, InconclusiveReason, Phase, known_bug, over_runs};
use evictlab_report::{CaseId, RunEventKind};
use tokio::sync::RwLockWriteGuard;

use crate::case_runner::{CaseOutcome, CaseRunner, Interrupted};
use crate::dispatch::run::RunContext;
use crate::node_access::exclusivity::Exclusivity;
use crate::node_access::run_node::RunNode;

/// Maximum number of tries of a case whose pressure is faster than the node's statistics. Each try
/// has half the speed of the one before.
const MAX_SPEED_TRIES: u32 = 4;

/// Maximum number of tries of a case of which the kubelet lost a container status. On a busy host,
/// it often loses two in a row.
const MAX_STATUS_TRIES: u32 = 3;

impl RunContext {
    /// Runs a case on its node as often as its `rate` states, else once.
    pub(super) async fn run_for_rate(
        &self,
        case: &LoadedCase,
        id: &CaseId,
        run_node: &RunNode,
        exclusivity: Exclusivity,
    ) -> Result<CaseOutcome, Interrupted> {
        let Some(rate) = &case.case.expect.rate else {
            return self.run_with_retries(case, id, run_node, exclusivity).await;
        };
        let (mut results, mut evidence) = (vec![], None);
        for run in 1..=rate.runs {
            let outcome = self.run_with_retries(case, id, run_node, exclusivity).await?;
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
        let bug = known_bug(&case.case, &run_node.node.version, Some(run_node.node.cgroup));
        Ok(CaseOutcome { result: over_runs(rate, bug, results), evidence })
    }

    /// Runs a case on its node. Repeats it more slowly while its pressure is faster than the node's
    /// statistics, and once if the threshold was not reached or the trigger not observed; after
    /// that, as often as the run retries cases that failed or are inconclusive. A case that shares
    /// its node is retried when no other such case runs: the load of many may have been the cause.
    async fn run_with_retries(
        &self,
        case: &LoadedCase,
        id: &CaseId,
        run_node: &RunNode,
        exclusivity: Exclusivity,
    ) -> Result<CaseOutcome, Interrupted> {
        let faults = self.request.backend.faults().unwrap_or_default();
        let (mut tries, mut retries) = (vec![], 0);
        let is_shared = exclusivity == Exclusivity::Shared;
        let mut beside_others = if is_shared { Some(self.shared_cases.read().await) } else { None };
        let mut _alone = None;
        loop {
            let runner = CaseRunner {
                run_id: &self.request.run_id,
                case,
                id: id.clone(),
                run_node,
                exclusivity,
                faults,
                host: &self.host,
                pressure_permits: self.pressure_permits.as_ref(),
                events: &self.events,
                cancel: &self.cancel,
            };
            let outcome = runner.run().await?;
            let number = tries.len() as u32 + 1;
            let retry = Retry::after(&outcome.result, number).or_else(|| {
                let is_due = outcome.result.is_retryable() && retries < self.request.retries;
                is_due.then(|| {
                    retries += 1;
                    Retry::Same
                })
            });
            // An injected fault may be the cause that the event is missing, at each try.
            let is_useful = outcome.result.inconclusive_reason != Some(InconclusiveReason::EventMissing)
                || faults.is_empty();
            let Some(retry) = retry.filter(|_| is_useful && !self.cancel.is_cancelled()) else {
                return Ok(CaseOutcome { result: outcome.result.after_tries(tries), ..outcome });
            };
            if retry == Retry::MoreSlowly {
                run_node.slow_down().await;
            }
            run_node.mark_unsteady().await;
            tries.push(outcome.result.as_earlier_try());
            self.events.send(RunEventKind::CaseRetried {
                id: id.clone(),
                try_number: number,
                text: if is_shared { format!("{retry} alone") } else { retry.to_string() },
                result: Arc::new(outcome.result),
                evidence: outcome.evidence,
            });
            if beside_others.take().is_some() {
                _alone = Some(self.wait_until_alone(id).await);
            }
        }
    }

    /// Waits until no other case runs that shares its node. None starts before the guard is
    /// dropped.
    async fn wait_until_alone(&self, id: &CaseId) -> RwLockWriteGuard<'_, ()> {
        if let Ok(alone) = self.shared_cases.try_write() {
            return alone;
        }
        let text = "waiting for the end of the cases that share their nodes".to_owned();
        self.events.send(RunEventKind::CaseStep { id: id.clone(), phase: Phase::AwaitNode, text });
        self.shared_cases.write().await
    }
}

/// Repetition of an inconclusive try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    /// With the same speed.
    Same,
    /// With half the speed.
    MoreSlowly,
}

impl Retry {
    /// Returns how to repeat a case after its try with this number, from 1.
    fn after(result: &CaseResult, number: u32) -> Option<Self> {
        match result.inconclusive_reason? {
            InconclusiveReason::StaleStatistics => (number < MAX_SPEED_TRIES).then_some(Self::MoreSlowly),
            // A race of the kubelet.
            InconclusiveReason::StatusLost => (number < MAX_STATUS_TRIES).then_some(Self::Same),
            // Memory that the node freed after the measurement lowers the effective threshold; the
            // second measurement does not include it any more.
            InconclusiveReason::ThresholdNotReached
            // The next try finds a node without unused images.
            | InconclusiveReason::ReclaimSufficed
            // Other load of the host may have come before the trigger, or delayed a deletion.
            | InconclusiveReason::TriggerNotObserved
            | InconclusiveReason::ReclaimPending
            // Events are delivered at best effort, but hardly lost twice.
            | InconclusiveReason::EventMissing => (number == 1).then_some(Self::Same),
            InconclusiveReason::KilledBeforeEviction
            | InconclusiveReason::RejectedAtAdmission
            | InconclusiveReason::PodNeverStarted
            | InconclusiveReason::HostUnfit
            | InconclusiveReason::EvidenceLost
            | InconclusiveReason::EndNotReached => None,
        }
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "retrying",
            Self::MoreSlowly => "retrying more slowly",
        })
    }
}

fn is_all_right(result: &CaseResult) -> bool {
    result.rate.as_ref().is_some_and(|rate| rate.count == rate.total)
}

#[cfg(test)]
mod tests {
    use evictlab_judge::Verdict;

    use super::*;

    #[test]
    fn retries_are_limited() {
        let after = |reason, number| {
            let result = CaseResult::without_evidence(Verdict::Inconclusive, "why");
            Retry::after(&CaseResult { inconclusive_reason: reason, ..result }, number)
        };
        let outrun = Some(InconclusiveReason::StaleStatistics);
        assert_eq!((1..=4).filter_map(|number| after(outrun, number)).count(), 3);
        let not_reached = Some(InconclusiveReason::ThresholdNotReached);
        assert_eq!([1, 2].map(|number| after(not_reached, number)), [Some(Retry::Same), None]);
        let sufficed = Some(InconclusiveReason::ReclaimSufficed);
        assert_eq!([1, 2].map(|number| after(sufficed, number)), [Some(Retry::Same), None]);
        let lost = Some(InconclusiveReason::StatusLost);
        assert_eq!([2, 3].map(|number| after(lost, number)), [Some(Retry::Same), None]);
        let missing = Some(InconclusiveReason::EventMissing);
        assert_eq!([1, 2].map(|number| after(missing, number)), [Some(Retry::Same), None]);
        assert_eq!(after(Some(InconclusiveReason::EvidenceLost), 1), None);
        assert_eq!(after(None, 1), None);
    }
}
