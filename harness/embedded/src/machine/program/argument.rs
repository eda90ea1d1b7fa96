//! Numbers in arguments.

use std::time::Duration;

/// A number of bytes as busybox's and coreutils' tools read it: `1M`, `1048576`, `10KiB`, `2b`, `1x1024`.
pub(in super::super) fn bytes(text: &str) -> Option<u64> {
    if let Some((left, right)) = text.split_once('x') {
        return bytes(left)?.checked_mul(bytes(right)?);
    }
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match &text[digits..] {
        "" | "c" => 1,
        "w" => 2,
        "b" => 512,
        "k" | "K" | "KiB" | "Ki" => 1 << 10,
        "kB" | "KB" | "kD" => 1000,
        "m" | "M" | "MiB" | "Mi" => 1 << 20,
        "MB" | "MD" => 1_000_000,
        "g" | "G" | "GiB" | "Gi" => 1 << 30,
        "GB" | "GD" => 1_000_000_000,
        "t" | "T" | "TiB" | "Ti" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// A duration as Go reads it (`time.ParseDuration`): `1.5s`, `1h2m`, `0`; nanoseconds are lost.
pub(in super::super) fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut whole = Duration::ZERO;
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
        whole += Duration::try_from_secs_f64(number * unit).ok()?;
    }
    (!text.is_empty()).then_some(whole)
}

/// A duration as Go prints it.
pub(super) fn print_duration(duration: Duration) -> String {
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
            let rest = trimmed((nanos - (hours * 3600 + minutes * 60) as u128 * 1_000_000_000) as f64 / 1e9);
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
    fn bytes_are_read_as_the_tools_read_them() {
        assert_eq!(bytes("1M"), Some(1 << 20));
        assert_eq!(bytes("1048576"), Some(1 << 20));
        assert_eq!(bytes("2x1k"), Some(2048));
        assert_eq!(bytes("1MB"), Some(1_000_000));
        assert_eq!(bytes("many"), None);
    }

    #[test]
    fn durations_are_read_and_printed_as_go_does() {
        assert_eq!(duration("1h2m3.5s"), Some(Duration::from_millis(3_723_500)));
        assert_eq!(duration("200ms"), Some(Duration::from_millis(200)));
        assert_eq!(duration("5"), None);
        assert_eq!(duration(""), None);
        for text in ["200ms", "1s", "1.5s", "1m0s", "2h0m1s", "0s", "1µs"] {
            assert_eq!(print_duration(duration(text).unwrap()), text);
        }
    }
}
