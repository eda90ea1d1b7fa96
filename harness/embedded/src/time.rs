//! The model's time: microseconds since the cluster began.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A moment, as the time since the cluster began. It has microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The cluster's beginning.
    pub const ZERO: Self = Self(0);

    /// The moment so long after the beginning.
    pub fn after(since: Duration) -> Self {
        Self(since.as_micros() as u64)
    }

    /// How long after the beginning it is.
    pub fn since_start(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// How long after another moment it is; nothing if it is earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.as_micros() as u64))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// What the calendar said when the cluster began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(pub Timestamp);

impl Epoch {
    /// The calendar's time of a moment.
    pub fn at(self, time: Time) -> Timestamp {
        let since = SignedDuration::try_from(time.since_start()).unwrap_or(SignedDuration::MAX);
        self.0.checked_add(since).unwrap_or(Timestamp::MAX)
    }

    /// As `metav1.Time` is written: whole seconds, `2026-01-01T00:00:00Z`.
    pub fn seconds(self, time: Time) -> String {
        self.at(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// As `metav1.MicroTime` is written: six digits of a second.
    pub fn micros(self, time: Time) -> String {
        self.at(time).strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    }
}
