//! Outages of the API server or the kubelet while a case is observed.

use std::time::Duration;

use evictlab_evidence::ObservationEnd;
use tokio::time::Instant;

/// Failures of watches and Summary requests since the last Summary, which is the last proof that
/// the API server and the kubelet answer.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    /// Start of the first request that failed.
    since: Instant,
    /// Text of the last failure.
    error: String,
}

/// Consequence of an outage for a case that ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutageEffect {
    /// The observation goes on: the end may be due to the outage, and the outage may be over soon.
    Continue,
    /// The case ends. This is the cause why its last Summary is missing.
    EndWithout(String),
    /// The case has no verdict, because of this failure.
    Unreachable(String),
}

impl Outage {
    /// Returns the outage after another failure of a request that began at `began`. The first
    /// failure determines the age of the outage.
    pub(crate) fn after_failure(before: Option<Self>, began: Instant, error: String) -> Self {
        let since = before.map_or(began, |before| before.since.min(began));
        Self { since, error }
    }

    /// Returns the time since the first request that failed.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns the text of the last failure.
    pub(crate) fn into_error(self) -> String {
        self.error
    }

    /// Returns the effect on a case that ends. `is_outcome_known`: every expected eviction was
    /// observed. `limit` is the maximum age of an outage; without any, the deadline has elapsed.
    pub(crate) fn effect(
        &self,
        end: &ObservationEnd,
        is_outcome_known: bool,
        limit: Option<Duration>,
    ) -> OutageEffect {
        let error = self.error.clone();
        let is_due_to_outage = match end {
            // Without answers, nothing changes.
            ObservationEnd::Stalled | ObservationEnd::Deadline(_) => true,
            // The kubelet may have evicted a pod since its last answer.
            ObservationEnd::Outcome => !is_outcome_known,
            ObservationEnd::Died(_) | ObservationEnd::Unexpected(_) | ObservationEnd::Stuck => false,
        };
        if !is_due_to_outage {
            let cause = format!("the kubelet did not answer at the end of the case: {error}");
            return OutageEffect::EndWithout(cause);
        }
        match limit {
            Some(limit) if self.age() < limit => OutageEffect::Continue,
            _ => OutageEffect::Unreachable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(40);

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_as_old_as_its_first_failed_request() {
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(30)).await;
        let outage = Outage::after_failure(None, began, "timed out".to_owned());
        assert_eq!(outage.age().as_secs(), 30);
        // A watch fails while a Summary request that began earlier is awaited.
        let watch = Outage::after_failure(None, Instant::now(), "refused".to_owned());
        let both = Outage::after_failure(Some(watch), began, "timed out".to_owned());
        assert_eq!((both.age().as_secs(), both.into_error().as_str()), (30, "timed out"));
        tokio::time::advance(Duration::from_secs(5)).await;
        let again = Outage::after_failure(Some(outage), Instant::now(), "refused".to_owned());
        assert_eq!((again.age().as_secs(), again.into_error().as_str()), (35, "refused"));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_long_outage_ends_a_case_without_a_verdict() {
        use OutageEffect::{Continue, Unreachable};
        let unreachable = || Unreachable("refused".to_owned());
        let without = || {
            let cause = "the kubelet did not answer at the end of the case: refused";
            OutageEffect::EndWithout(cause.to_owned())
        };
        let deadline = || ObservationEnd::Deadline(LIMIT);
        let died = || ObservationEnd::Died("web".to_owned());
        // Age of the outage, end of the case, and whether the expected evictions were observed.
        let rows = [
            (1, ObservationEnd::Stalled, false, Some(LIMIT), Continue),
            (39, ObservationEnd::Stalled, false, Some(LIMIT), Continue),
            (40, ObservationEnd::Stalled, false, Some(LIMIT), unreachable()),
            (1, ObservationEnd::Outcome, false, Some(LIMIT), Continue),
            (40, ObservationEnd::Outcome, false, Some(LIMIT), unreachable()),
            (1, ObservationEnd::Outcome, true, Some(LIMIT), without()),
            (1, died(), false, Some(LIMIT), without()),
            (40, ObservationEnd::Stuck, false, Some(LIMIT), without()),
            (1, deadline(), false, None, unreachable()),
            (1, ObservationEnd::Outcome, false, None, unreachable()),
        ];
        for (age, end, is_known, limit, effect) in rows {
            let outage = Outage::after_failure(None, Instant::now(), "refused".to_owned());
            tokio::time::advance(Duration::from_secs(age)).await;
            assert_eq!(outage.effect(&end, is_known, limit), effect, "{end:?} after {age} s");
        }
    }
}
