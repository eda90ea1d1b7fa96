//! Go's durations, as grace periods are written.

use std::time::Duration;

/// The text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraceError {
    /// Not Go's form.
    #[error("{0:?} is no duration: write it like 30s, 1m30s or 1.5h")]
    Shape(String),
    /// Less than nothing.
    #[error("invalid eviction grace period specified: {0}, must be a positive value")]
    Negative(String),
}

const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 6e10), ("h", 3.6e12)];

/// Reads a grace period in Go's form (`time.ParseDuration`). 0 is accepted.
///
/// # Errors
/// Other forms, and negative ones.
pub fn parse_grace(text: &str) -> Result<Duration, GraceError> {
    let shape = || GraceError::Shape(text.to_owned());
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut rest = unsigned;
    let mut nanos = 0.0;
    while !rest.is_empty() && unsigned != "0" {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(shape)?;
        let number: f64 = rest[..end].parse().map_err(|_| shape())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..end]).ok_or_else(shape)?;
        nanos += number * unit;
        rest = &rest[end..];
    }
    if unsigned.is_empty() || nanos > i64::MAX as f64 {
        return Err(shape());
    }
    if negative && nanos > 0.0 {
        return Err(GraceError::Negative(text.to_owned()));
    }
    Ok(Duration::from_nanos(nanos as u64))
}
