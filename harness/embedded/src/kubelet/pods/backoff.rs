//! Exponential backoff (client-go `util/flowcontrol.Backoff`).

use std::time::Duration;

use crate::sim::SimTime;

/// Delay after the first failure.
const INITIAL_DELAY: Duration = Duration::from_secs(10);
/// Maximum delay.
const MAX_DELAY: Duration = Duration::from_secs(300);

/// Backoff of one container or image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backoff {
    pub delay: Duration,
    updated: SimTime,
}

impl Backoff {
    /// Returns the backoff after another failure: the initial delay, or twice the last one. The
    /// delay starts again if the last failure is more than twice `MAX_DELAY` ago.
    pub(super) fn next(last: Option<Self>, failed: SimTime, now: SimTime) -> Self {
        let delay = match last {
            Some(last) if failed.since(last.updated) <= MAX_DELAY * 2 => (last.delay * 2).min(MAX_DELAY),
            _ => INITIAL_DELAY,
        };
        Self { delay, updated: now }
    }

    /// Returns the end of the backoff after a failure, or `None` if it has passed.
    pub(super) fn end_after(self, failed: SimTime, now: SimTime) -> Option<SimTime> {
        let long_past = failed.since(self.updated) > MAX_DELAY * 2;
        let until = failed + self.delay;
        (!long_past && until > now).then_some(until)
    }

    /// Returns the end of the backoff, counted from the last update.
    pub(super) fn end_after_update(self, now: SimTime) -> Option<SimTime> {
        self.end_after(self.updated, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_five_minutes_and_resets_after_ten() {
        let at = |seconds| SimTime::from_start(Duration::from_secs(seconds));
        let mut last = Backoff::next(None, at(0), at(0));
        let mut delays = vec![last.delay.as_secs()];
        for _ in 0..6 {
            last = Backoff::next(Some(last), at(0), at(0));
            delays.push(last.delay.as_secs());
        }
        assert_eq!(delays, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(last.end_after(at(0), at(299)), Some(at(300)));
        assert_eq!(last.end_after(at(0), at(300)), None);
        assert_eq!(Backoff::next(Some(last), at(601), at(601)).delay.as_secs(), 10);
    }
}
