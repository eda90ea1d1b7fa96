//! Grace periods of pods.

use std::fmt;
use std::time::Duration;

use evictlab_case::PodSpecManifest;
use serde_json::Value;

/// Time that a pod has from the request to end until its processes are killed, in whole seconds as
/// in the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GracePeriod {
    seconds: u32,
}

impl GracePeriod {
    /// Kills the processes at once.
    pub const NONE: Self = Self::from_secs(0);
    /// Default of `terminationGracePeriodSeconds`.
    pub const DEFAULT: Self = Self::from_secs(30);

    /// Creates a grace period of a number of seconds.
    pub const fn from_secs(seconds: u32) -> Self {
        Self { seconds }
    }

    /// Returns the grace period of a pod: its `terminationGracePeriodSeconds`, or the default. The
    /// API server makes 1 of a negative number (`pkg/apis/core/v1/defaults.go`).
    pub fn of_pod(spec: &PodSpecManifest) -> Self {
        match spec.other.get("terminationGracePeriodSeconds").and_then(Value::as_number) {
            Some(number) if number.as_i64().is_some_and(|seconds| seconds < 0) => Self::from_secs(1),
            Some(number) => Self::from_secs(
                number.as_u64().map_or(u32::MAX, |seconds| seconds.try_into().unwrap_or(u32::MAX)),
            ),
            None => Self::DEFAULT,
        }
    }

    /// Returns the number of seconds.
    pub fn seconds(self) -> u32 {
        self.seconds
    }

    /// Returns the grace period as a duration.
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.seconds as u64)
    }
}

impl From<Duration> for GracePeriod {
    /// Rounds up: a part of a second must not become [`GracePeriod::NONE`].
    fn from(duration: Duration) -> Self {
        let whole = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
        Self::from_secs(whole.try_into().unwrap_or(u32::MAX))
    }
}

impl fmt::Display for GracePeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_a_second_are_rounded_up() {
        for (millis, seconds) in [(0, 0), (1, 1), (500, 1), (1000, 1), (1500, 2), (u64::MAX, u32::MAX)] {
            assert_eq!(GracePeriod::from(Duration::from_millis(millis)).seconds(), seconds, "{millis} ms");
        }
    }

    #[test]
    fn a_pod_has_the_stated_period_or_the_default() {
        let rows = [
            (json!({}), 30),
            (json!({"terminationGracePeriodSeconds": null}), 30),
            (json!({"terminationGracePeriodSeconds": 0}), 0),
            (json!({"terminationGracePeriodSeconds": -5}), 1),
            (json!({"terminationGracePeriodSeconds": u64::MAX}), u32::MAX),
        ];
        for (spec, seconds) in rows {
            let parsed = PodSpecManifest::parse(spec.as_object().unwrap()).unwrap();
            assert_eq!(GracePeriod::of_pod(&parsed).seconds(), seconds, "{spec}");
        }
    }
}
