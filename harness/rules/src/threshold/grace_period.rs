//! Grace periods of soft thresholds.

use std::time::Duration;

use crate::go_duration::{GoDurationError, parse_go_duration};

/// The text is not a grace period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GracePeriodError {
    /// The text is not a Go duration.
    #[error(transparent)]
    InvalidDuration(#[from] GoDurationError),
    /// The duration is negative. The message is the kubelet's own.
    #[error("invalid eviction grace period specified: {0}, must be a positive value")]
    Negative(String),
}

/// Parses a grace period, which is a duration of Go. Accepts 0 (`parseGracePeriods` in
/// `helpers.go`).
///
/// # Errors
/// Returns an error for texts that are not a Go duration and for negative durations.
pub fn parse_grace_period(text: &str) -> Result<Duration, GracePeriodError> {
    let period = parse_go_duration(text)?;
    if period.is_negative() {
        return Err(GracePeriodError::Negative(text.to_owned()));
    }
    Ok(period.unsigned_abs())
}
