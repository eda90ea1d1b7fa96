//! Repetition of a run.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Repetition of the selected cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A fixed number of attempts.
    Times(u32),
    /// Until a case failed or ended in an error.
    UntilFailure,
    /// Repeats each case on each kubelet until it has this number of verdicts other than
    /// `inconclusive` and `error`.
    UntilConclusive {
        /// Number of conclusive verdicts.
        verdicts: u32,
        /// Maximum number of attempts.
        attempts: u32,
    },
    /// Repeats each case independently on every node until the limit.
    Stress(StressLimit),
}

/// End of a stress run; attempts that have started are completed. `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StressLimit {
    /// Maximum number of attempts of each case on each kubelet.
    pub max_attempts: Option<u32>,
    /// Time after which no attempt starts.
    pub max_time: Option<Duration>,
    /// Start no attempt after the first failure.
    pub fail_fast: bool,
}

impl Repeat {
    /// Returns the number of attempts of each case on each kubelet; `None` if it depends on
    /// verdicts or on time. Further attempts of an inconclusive case do not count.
    pub(crate) fn planned_attempts(self) -> Option<u32> {
        match self {
            Self::Times(times) => Some(times),
            Self::UntilConclusive { verdicts, .. } => Some(verdicts),
            Self::Stress(StressLimit { max_attempts, max_time: None, .. }) => max_attempts,
            Self::UntilFailure | Self::Stress(_) => None,
        }
    }

    /// Returns the attempts that do not depend on the verdicts of others: their cases run in any
    /// order, and at the same time on different nodes.
    pub(crate) fn first_attempts(self) -> RangeInclusive<u32> {
        match self {
            Self::Times(times) => 1..=times,
            Self::UntilConclusive { .. } | Self::UntilFailure | Self::Stress(_) => 1..=1,
        }
    }

    /// Returns whether an attempt is due, counted from 1. `failed`: a case failed or ended in an
    /// error.
    pub(crate) fn allows_attempt(self, attempt: u32, failed: bool) -> bool {
        match self {
            Self::Times(times) | Self::UntilConclusive { attempts: times, .. } => attempt <= times,
            Self::UntilFailure => !failed,
            Self::Stress(_) => attempt == 1,
        }
    }
}

impl StressLimit {
    /// Returns whether another attempt may start, counted from 1. `failed`: any attempt failed.
    pub(crate) fn allows_attempt(self, attempt: u32, elapsed: Duration, failed: bool) -> bool {
        self.max_attempts.is_none_or(|max| attempt <= max)
            && self.max_time.is_none_or(|max| elapsed < max)
            && !(self.fail_fast && failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_limited() {
        assert!(Repeat::Times(2).allows_attempt(2, true) && !Repeat::Times(2).allows_attempt(3, false));
        let until_failure = Repeat::UntilFailure;
        assert!(until_failure.allows_attempt(100, false) && !until_failure.allows_attempt(2, true));
        let until_conclusive = Repeat::UntilConclusive { verdicts: 2, attempts: 3 };
        assert!(until_conclusive.allows_attempt(3, true) && !until_conclusive.allows_attempt(4, true));
    }

    #[test]
    fn stress_ends_at_its_limit() {
        let (early, late) = (Duration::from_secs(9), Duration::from_secs(10));
        let unlimited = StressLimit::default();
        assert!(unlimited.allows_attempt(u32::MAX, late, true));
        let runs = StressLimit { max_attempts: Some(3), ..unlimited };
        assert!(runs.allows_attempt(3, late, true) && !runs.allows_attempt(4, early, false));
        let time = StressLimit { max_time: Some(late), ..unlimited };
        assert!(time.allows_attempt(9, early, true) && !time.allows_attempt(1, late, false));
        let failure = StressLimit { fail_fast: true, ..unlimited };
        assert!(failure.allows_attempt(9, late, false) && !failure.allows_attempt(9, early, true));
    }
}
