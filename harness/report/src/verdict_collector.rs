//! Collects the results of a run for the code that started it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evictlab_judge::CaseResult;

use crate::run_event::{CaseId, ClusterFailureCause, RunEvent, RunEventKind};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};

/// A report that collects the results of a run. Clones share them.
#[derive(Clone, Default)]
pub struct VerdictCollector {
    collected: Arc<Mutex<Collected>>,
    on_result: Option<Arc<dyn Fn() + Send + Sync>>,
}

#[derive(Debug, Default)]
struct Collected {
    results: Vec<CollectedResult>,
    cluster_failure: Option<ClusterFailure>,
}

/// The result of an execution.
#[derive(Clone, Debug)]
pub struct CollectedResult {
    /// Case, kubelet and attempt.
    pub id: CaseId,
    /// The result.
    pub result: Arc<CaseResult>,
}

/// The failure of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFailure {
    /// Name of the cluster.
    pub cluster: String,
    /// The error, with advice.
    pub error: String,
    /// The cause, if it is a known one.
    pub cause: Option<ClusterFailureCause>,
}

impl VerdictCollector {
    /// Returns a collector that calls this function after each result, from the thread of the
    /// reports.
    pub fn with_notification(on_result: impl Fn() + Send + Sync + 'static) -> Self {
        Self { on_result: Some(Arc::new(on_result)), ..Self::default() }
    }

    /// Returns the results so far, in order of arrival.
    pub fn results(&self) -> Vec<CollectedResult> {
        self.collected().results.clone()
    }

    /// Returns the last result so far of an execution that meets a condition.
    pub fn last_result(&self, is_wanted: impl Fn(&CaseId) -> bool) -> Option<Arc<CaseResult>> {
        self.collected().results.iter().rfind(|one| is_wanted(&one.id)).map(|one| one.result.clone())
    }

    /// Returns the last failure of a cluster.
    pub fn cluster_failure(&self) -> Option<ClusterFailure> {
        self.collected().cluster_failure.clone()
    }

    fn collected(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for VerdictCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerdictCollector").field("collected", &self.collected).finish_non_exhaustive()
    }
}

impl fmt::Display for ClusterFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {} failed: {}", self.cluster, self.error)
    }
}

impl Report for VerdictCollector {
    fn name(&self) -> &'static str {
        "verdicts"
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        match &event.kind {
            RunEventKind::CaseEnded { id, result, .. } => {
                let result = CollectedResult { id: id.clone(), result: result.clone() };
                self.collected().results.push(result);
                if let Some(on_result) = &self.on_result {
                    on_result();
                }
            }
            RunEventKind::ClusterFailed { cluster, error, cause, .. } => {
                let (cluster, error) = (cluster.clone(), error.clone());
                self.collected().cluster_failure = Some(ClusterFailure { cluster, error, cause: *cause });
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use evictlab_judge::Verdict;

    use super::*;
    use crate::fixtures::{case_ended, event};

    #[test]
    fn collects_results_in_order_and_notifies_after_each() {
        let notified = Arc::new(AtomicU32::new(0));
        let count = notified.clone();
        let collector = VerdictCollector::with_notification(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let mut report = collector.clone();
        for (attempt, verdict) in [(1, Verdict::Inconclusive), (2, Verdict::Passed)] {
            let ended = case_ended("a", "v1.32.13", attempt, verdict, "why");
            report.on_event(&event(1.0, ended), &RunState::default()).unwrap();
            assert_eq!(notified.load(Ordering::SeqCst), attempt);
        }
        let found = collector.results();
        let found: Vec<_> = found.iter().map(|one| (one.id.attempt, one.result.verdict)).collect();
        assert_eq!(found, [(1, Verdict::Inconclusive), (2, Verdict::Passed)]);
        assert_eq!(collector.last_result(|_| true).unwrap().verdict, Verdict::Passed);
        let first = collector.last_result(|id| id.attempt == 1).unwrap();
        assert_eq!(first.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn keeps_the_failure_of_a_cluster_with_its_cause() {
        let mut collector = VerdictCollector::default();
        assert_eq!(collector.cluster_failure(), None);
        let failed = RunEventKind::ClusterFailed {
            cluster: "c".to_owned(),
            seconds: 1.0,
            error: "no image".to_owned(),
            cause: Some(ClusterFailureCause::KubeletBinary),
        };
        collector.on_event(&event(1.0, failed), &RunState::default()).unwrap();
        let failure = collector.cluster_failure().unwrap();
        assert_eq!(failure.to_string(), "cluster c failed: no image");
        assert_eq!(failure.cause, Some(ClusterFailureCause::KubeletBinary));
    }
}
