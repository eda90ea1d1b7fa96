//! Failures of a run and of its current cluster.

use std::cell::Cell;

use evictlab_judge::Verdict;
use evictlab_report::FlakyResult;

/// Failures so far. The clusters of a run are used one after the other.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    has_failure: Cell<bool>,
    cluster_needs_attention: Cell<bool>,
}

impl Failures {
    /// Begins a cluster, on which nothing has failed yet.
    pub(super) fn begin_cluster(&self) {
        self.cluster_needs_attention.set(false);
    }

    /// Records a verdict of the current cluster.
    pub(super) fn record(&self, verdict: Verdict, flaky_result: FlakyResult) {
        let is_flaky_failure = verdict == Verdict::Flaky && flaky_result == FlakyResult::Fail;
        if verdict.needs_attention() || is_flaky_failure {
            self.record_cluster_failure();
        }
        if verdict.is_failure() {
            self.has_failure.set(true);
        }
    }

    /// Records that the current cluster failed, or that its cases did not end in time.
    pub(super) fn record_cluster_failure(&self) {
        self.cluster_needs_attention.set(true);
    }

    /// Returns whether a case of the run failed or ended in an error.
    pub(super) fn has_failure(&self) -> bool {
        self.has_failure.get()
    }

    /// Returns whether `--keep-on-failure` keeps the current cluster.
    pub(super) fn cluster_needs_attention(&self) -> bool {
        self.cluster_needs_attention.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_kept_for_verdicts_that_need_attention() {
        use FlakyResult::{Fail, Pass};
        for (verdict, flaky_result, keeps, fails) in [
            (Verdict::Passed, Fail, false, false),
            (Verdict::Reproduced, Fail, false, false),
            (Verdict::Fixed, Fail, false, false),
            (Verdict::Skipped, Fail, false, false),
            (Verdict::Flaky, Pass, false, false),
            (Verdict::Flaky, Fail, true, false),
            (Verdict::Inconclusive, Pass, true, false),
            (Verdict::Failed, Pass, true, true),
            (Verdict::Error, Pass, true, true),
        ] {
            let failures = Failures::default();
            failures.record(verdict, flaky_result);
            let got = (failures.cluster_needs_attention(), failures.has_failure());
            assert_eq!(got, (keeps, fails), "{verdict} {flaky_result:?}");
        }
    }

    #[test]
    fn a_failure_does_not_keep_later_clusters() {
        let failures = Failures::default();
        failures.begin_cluster();
        failures.record(Verdict::Failed, FlakyResult::Pass);
        failures.begin_cluster();
        failures.record(Verdict::Passed, FlakyResult::Pass);
        assert!(failures.has_failure() && !failures.cluster_needs_attention());
    }
}
