//! [`DurationError`].

use std::time::Duration;

/// Text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is empty, or does not begin with a number.
    #[error("expected a number and a unit, such as 30s, 5m or 1h 30m")]
    NotADuration,
    /// A number without a unit.
    #[error("the unit is missing: write {number}s, {number}m or {number}h")]
    NoUnit {
        /// The number.
        number: u64,
    },
    /// A unit of time that does not exist.
    #[error("`{unit}` is not a unit of time: write {number}s, {number}m or {number}h")]
    UnknownUnit {
        /// The number before the unit.
        number: u64,
        /// The unit.
        unit: String,
    },
    /// A character that no duration has.
    #[error(
        "a duration cannot have the character `{0}`: write a number and a unit, such as 30s, 5m or 1h 30m"
    )]
    Character(char),
    /// The number is too large, or smaller than a nanosecond.
    #[error("the number is out of range")]
    OutOfRange,
}

/// Parses a duration such as `500ms`, `30s` or `1h 30m`.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::InvalidCharacter(at) => {
            text[at..].chars().next().map_or(DurationError::NotADuration, DurationError::Character)
        }
        humantime::DurationError::UnknownUnit { unit, value, .. } if unit.is_empty() => {
            DurationError::NoUnit { number: value }
        }
        humantime::DurationError::UnknownUnit { unit, value, .. } => {
            DurationError::UnknownUnit { number: value, unit }
        }
        humantime::DurationError::NumberOverflow => DurationError::OutOfRange,
        humantime::DurationError::NumberExpected(_) | humantime::DurationError::Empty => {
            DurationError::NotADuration
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_state_a_duration_that_is_valid() {
        let rows = [
            ("5x", "`x` is not a unit of time: write 5s, 5m or 5h"),
            ("1h 5parsecs", "`parsecs` is not a unit of time: write 5s, 5m or 5h"),
            ("5", "the unit is missing: write 5s, 5m or 5h"),
            ("", "expected a number and a unit, such as 30s, 5m or 1h 30m"),
            ("soon", "expected a number and a unit, such as 30s, 5m or 1h 30m"),
            ("-5s", "expected a number and a unit, such as 30s, 5m or 1h 30m"),
            (
                "5s;",
                "a duration cannot have the character `;`: write a number and a unit, such as 30s, 5m or 1h 30m",
            ),
            ("99999999999999999999s", "the number is out of range"),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_duration(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        // The suggestions of the errors are durations.
        for text in ["5s", "5m", "5h", "1h 30m"] {
            assert!(parse_duration(text).is_ok(), "{text}");
        }
    }
}
