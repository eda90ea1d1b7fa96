//! [`DurationText`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::ValueError;
use super::from_text::impl_from_text;

/// Longest duration of a case file. Sums of durations do not overflow.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// A duration, such as `15s`, `500ms` or `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationText(Duration);

impl_from_text!(DurationText, r"^([0-9]+ *[a-zA-Z]+ *)+$|^0$");

impl DurationText {
    /// Returns the duration.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for DurationText {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let error = |why: &str| ValueError::Duration { text: text.to_owned(), why: why.to_owned() };
        let duration = evictlab_fault::parse_duration(text).map_err(|why| error(&why.to_string()))?;
        if duration > MAX_DURATION {
            return Err(error("it is longer than 7 days"));
        }
        Ok(Self(duration))
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::from_text::check_texts;

    #[test]
    fn a_duration_has_units_and_at_most_seven_days() {
        check_texts::<DurationText>(
            &["15s", "500ms", "5m", "1h 30m", "0s", "7days"],
            &["", "15", "s", "-1s", "1 parsec", "7days 1ns", "10000000000000000000s"],
        );
    }
}
