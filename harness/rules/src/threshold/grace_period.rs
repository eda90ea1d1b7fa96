//! Grace periods, written as Go durations.

use std::time::Duration;

/// The text is not a grace period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GracePeriodError {
    /// The text is not a Go duration.
    #[error("invalid duration {0:?}: expected a form like 30s, 1m30s or 1.5h")]
    InvalidDuration(String),
    /// The duration is negative. The message is the kubelet's own.
    #[error("invalid eviction grace period specified: {0}, must be a positive value")]
    Negative(String),
}

/// Units of a Go duration, in nanoseconds.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 6e10), ("h", 3.6e12)];

/// Parses a grace period as `time.ParseDuration` does. Accepts 0.
///
/// # Errors
/// Returns an error for texts that are not a Go duration and for negative durations.
pub fn parse_grace_period(text: &str) -> Result<Duration, GracePeriodError> {
    let invalid = || GracePeriodError::InvalidDuration(text.to_owned());
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut rest = unsigned;
    let mut nanos = 0.0;
    while !rest.is_empty() && unsigned != "0" {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let number: f64 = rest[..end].parse().map_err(|_| invalid())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..end]).ok_or_else(invalid)?;
        nanos += number * unit;
        rest = &rest[end..];
    }
    if unsigned.is_empty() || nanos > i64::MAX as f64 {
        return Err(invalid());
    }
    if negative && nanos > 0.0 {
        return Err(GracePeriodError::Negative(text.to_owned()));
    }
    Ok(Duration::from_nanos(nanos as u64))
}
