//! Sizes in arguments.

use evictlab_rules::quantity::{GIB, KIB, MIB};

/// Parses a number of bytes as busybox does: `1M`, `1048576`, `10KiB`, `2b`, `1x1024`.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    if let Some((left, right)) = text.split_once('x') {
        return parse_size(left)?.checked_mul(parse_size(right)?);
    }
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match &text[digits..] {
        "" | "c" => 1,
        "w" => 2,
        "b" => 512,
        "k" | "K" | "KiB" | "Ki" => KIB,
        "kB" | "KB" | "kD" => 1000,
        "m" | "M" | "MiB" | "Mi" => MIB,
        "MB" | "MD" => 1_000_000,
        "g" | "G" | "GiB" | "Gi" => GIB,
        "GB" | "GD" => 1_000_000_000,
        "t" | "T" | "TiB" | "Ti" => 1024 * GIB,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sizes_of_busybox() {
        assert_eq!(parse_size("1M"), Some(1 << 20));
        assert_eq!(parse_size("1048576"), Some(1 << 20));
        assert_eq!(parse_size("2x1k"), Some(2048));
        assert_eq!(parse_size("1MB"), Some(1_000_000));
        assert_eq!(parse_size("many"), None);
    }
}
