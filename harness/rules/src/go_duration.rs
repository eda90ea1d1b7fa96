//! Durations as Go writes them, such as `1m30s`.

use std::time::Duration;

use jiff::SignedDuration;

/// The text is not a duration of Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {0:?}: expected a form like 30s, 1m30s or 1.5h")]
pub struct GoDurationError(pub String);

/// Units, in nanoseconds. `µ` has two code points in Unicode.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Greatest magnitude of a duration, in nanoseconds. Only a negative duration can have it.
const MAX_NANOS: u64 = 1 << 63;

/// Parses a duration with the result of `time.ParseDuration`, exact to the nanosecond: numbers with
/// units, or `0` alone, after an optional sign.
///
/// ```
/// let duration = evictlab_rules::parse_go_duration("-1m8.2s")?;
/// assert_eq!(duration.as_millis(), -68_200);
/// # Ok::<(), evictlab_rules::GoDurationError>(())
/// ```
///
/// # Errors
/// The text does not have this form, or the duration is longer than 292 years.
pub fn parse_go_duration(text: &str) -> Result<SignedDuration, GoDurationError> {
    let error = || GoDurationError(text.to_owned());
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned.is_empty() {
        return Err(error());
    }
    let mut rest = if unsigned == "0" { "" } else { unsigned };
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let (part, after) = parse_part(rest).ok_or_else(error)?;
        nanos = nanos.checked_add(part).filter(|sum| *sum <= MAX_NANOS).ok_or_else(error)?;
        rest = after;
    }
    let nanos = if is_negative { 0_i64.checked_sub_unsigned(nanos) } else { i64::try_from(nanos).ok() };
    nanos.map(SignedDuration::from_nanos).ok_or_else(error)
}

/// Formats a duration as Go does (`Duration.String`): `1m30.5s`, `100ms`, `0s`.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(evictlab_rules::format_go_duration(Duration::from_millis(90_500)), "1m30.5s");
/// ```
pub fn format_go_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let part = |nanos: u128, unit: u128, name: &str| {
        let text = format!("{}.{:09}", nanos / unit, nanos % unit * (1_000_000_000 / unit));
        format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => part(nanos, 1_000, "\u{b5}s"),
        1_000_000..1_000_000_000 => part(nanos, 1_000_000, "ms"),
        _ => {
            let seconds = part(nanos % 60_000_000_000, 1_000_000_000, "s");
            match (duration.as_secs() / 3600, duration.as_secs() / 60 % 60) {
                (0, 0) => seconds,
                (0, minutes) => format!("{minutes}m{seconds}"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    }
}

/// Parses the number and the unit at the start of a text. Returns their nanoseconds and the
/// remaining text.
fn parse_part(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = whole.checked_mul(unit)?.checked_add(fraction_nanos(fraction, unit))?;
    (nanos <= MAX_NANOS).then_some((nanos, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns the nanoseconds of the digits after a decimal point, rounded down. Ignores the digits
/// that do not fit into a number of 64 bits (`leadingFraction` in Go's `time/format.go`).
fn fraction_nanos(digits: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes().map(|digit| u64::from(digit - b'0')) {
        let longer = number.checked_mul(10).and_then(|number| number.checked_add(digit));
        let Some(longer) = longer.filter(|longer| *longer <= MAX_NANOS) else { break };
        (number, scale) = (longer, scale * 10.0);
    }
    (number as f64 * (unit as f64 / scale)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of Go's own test (`parseDurationTests` in `time/time_test.go`), and fractions that a
    /// sum of floating-point numbers rounds down by one nanosecond.
    #[test]
    fn parses_as_go_does() {
        let rows = [
            ("0", 0),
            ("-0", 0),
            ("+0", 0),
            ("5s", 5_000_000_000),
            ("1478s", 1_478_000_000_000),
            ("-5s", -5_000_000_000),
            ("+5s", 5_000_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.0040s", 1_004_000_000),
            ("10ns", 10),
            ("12\u{b5}s", 12_000),
            ("12\u{3bc}s", 12_000),
            ("3h30m", 12_600_000_000_000),
            ("-1m30.5s", -90_500_000_000),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.830103483285477580700h", 2_988_372_539_827),
            ("9007199254.740993ms", 9_007_199_254_740_993),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("8.2s", 8_200_000_000),
            ("1.1s", 1_100_000_000),
        ];
        for (text, nanos) in rows {
            assert_eq!(parse_go_duration(text), Ok(SignedDuration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn formats_as_go_does() {
        for text in ["0s", "3ns", "1.5\u{b5}s", "200ms", "1.000000001s", "1m30.5s", "2m0s", "24h0m0s"] {
            let duration = parse_go_duration(text).unwrap();
            assert_eq!(format_go_duration(duration.unsigned_abs()), text);
        }
    }

    #[test]
    fn rejects_what_go_rejects() {
        for text in [
            "",
            "3",
            "-",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "1d",
            "--1s",
            "+-10s",
            "1..5m",
            "1.5.5s",
            "1.s.5",
            "1 s",
            "s5",
            "9223372036854775808ns",
            "3000000h",
            "9223372036854775807.9ns1ns",
            "-9223372036854775809ns",
        ] {
            assert_eq!(parse_go_duration(text), Err(GoDurationError(text.to_owned())), "{text}");
        }
    }
}
