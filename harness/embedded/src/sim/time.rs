//! Simulated time.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta;

/// Time since the start of the cluster, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// Start of the cluster.
    pub const ZERO: Self = Self(0);

    /// Returns the time at a distance from the start; the last one if it is later.
    pub fn after(since: Duration) -> Self {
        Self(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
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

impl Add<Duration> for Time {
    type Output = Self;

    /// Returns the last time if the sum is later.
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(Self::after(by).0))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Calendar time at the start of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(pub Timestamp);

impl Epoch {
    /// Returns the calendar time.
    pub(crate) fn at(self, time: Time) -> Timestamp {
        let since = SignedDuration::try_from(time.since_start()).unwrap_or(SignedDuration::MAX);
        self.0.checked_add(since).unwrap_or(Timestamp::MAX)
    }

    /// Returns the calendar time as `metav1.Time`, with whole seconds.
    pub(crate) fn meta_time(self, time: Time) -> meta::v1::Time {
        let seconds = Timestamp::from_second(self.at(time).as_second());
        meta::v1::Time(seconds.unwrap_or(Timestamp::MAX))
    }

    /// Formats a time as `metav1.Time`, with whole seconds: `2026-01-01T00:00:00Z`.
    pub(crate) fn seconds(self, time: Time) -> String {
        self.at(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Returns the calendar time as `metav1.MicroTime`.
    pub(crate) fn micro_time(self, time: Time) -> meta::v1::MicroTime {
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
        assert_eq!(Time::after(long), Time(u64::MAX));
        assert_eq!(Time(1) + long, Time(u64::MAX));
        assert_eq!(Time(1) + Duration::from_secs(1), Time(1_000_001));
    }
}
