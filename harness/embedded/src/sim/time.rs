//! Simulated time.

use std::ops::Add;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta;

/// Time since the start of the cluster, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(u64);

impl SimTime {
    /// Start of the cluster.
    pub const ZERO: Self = Self(0);

    /// Returns the time at a distance from the start; the last one if it is later.
    pub fn from_start(elapsed: Duration) -> Self {
        Self(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))
    }

    /// Returns the time since the start.
    pub fn since_start(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// Returns the time since another time, or zero if the other time is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for SimTime {
    type Output = Self;

    /// Returns the last time if the sum is later.
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(Self::from_start(by).0))
    }
}

/// Calendar time at the start of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(pub Timestamp);

impl Epoch {
    /// Returns the calendar time.
    pub(crate) fn at(self, time: SimTime) -> Timestamp {
        let since = SignedDuration::try_from(time.since_start()).unwrap_or(SignedDuration::MAX);
        self.0.checked_add(since).unwrap_or(Timestamp::MAX)
    }

    /// Returns the calendar time as `metav1.Time`, with whole seconds.
    pub(crate) fn meta_time(self, time: SimTime) -> meta::v1::Time {
        let seconds = Timestamp::from_second(self.at(time).as_second());
        meta::v1::Time(seconds.unwrap_or(Timestamp::MAX))
    }

    /// Formats a time as `metav1.Time`, with whole seconds: `2026-01-01T00:00:00Z`.
    pub(crate) fn rfc3339_seconds(self, time: SimTime) -> String {
        self.at(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Returns the calendar time as `metav1.MicroTime`.
    pub(crate) fn micro_time(self, time: SimTime) -> meta::v1::MicroTime {
        meta::v1::MicroTime(self.at(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_ends_at_its_maximum() {
        // The microseconds do not fit: a cast would return 0.
        let long = Duration::from_secs(1 << 58);
        assert_eq!(SimTime::from_start(long), SimTime(u64::MAX));
        assert_eq!(SimTime(1) + long, SimTime(u64::MAX));
        assert_eq!(SimTime(1) + Duration::from_secs(1), SimTime(1_000_001));
    }
}
