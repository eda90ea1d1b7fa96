//! Durations in Go's syntax.

use std::time::Duration;

/// Parses a duration as `time.ParseDuration` does: `1.5s`, `1h2m`, `0`. Returns `None` for another
/// text or a negative duration. Long durations lose their nanoseconds.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|char: char| char.is_ascii_digit() || char == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        rest = &rest[end..];
        sum = sum.checked_add(Duration::try_from_secs_f64(number * unit).ok()?)?;
    }
    (!text.is_empty()).then_some(sum)
}

/// Formats a duration as Go does.
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let trimmed = |value: f64| {
        let text = format!("{value:.9}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match nanos {
        0..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", trimmed(nanos as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{}ms", trimmed(nanos as f64 / 1e6)),
        _ => {
            let seconds = duration.as_secs();
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let rest =
                trimmed((nanos - u128::from(hours * 3600 + minutes * 60) * 1_000_000_000) as f64 / 1e9);
            match (hours, minutes) {
                (0, 0) => format!("{rest}s"),
                (0, _) => format!("{minutes}m{rest}s"),
                _ => format!("{hours}h{minutes}m{rest}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_formats_durations_as_go_does() {
        assert_eq!(parse("1h2m3.5s"), Some(Duration::from_millis(3_723_500)));
        for text in ["5", "", "s", "-1s", "1 s", "1e3s", "."] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        for text in ["200ms", "1s", "1.5s", "1m0s", "2h0m1s", "0s", "1µs"] {
            assert_eq!(parse(text).map(format).as_deref(), Some(text));
        }
    }
}
