//! Units of eviction signals.

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Bytes of memory or storage.
    Bytes,
    /// Number of inodes or process IDs.
    Count,
}

impl Unit {
    /// Formats a value with about three digits: `512Mi`, `1.25Gi`, `32.8k`.
    pub(super) fn format(self, value: f64) -> String {
        let (factor, prefix) = self.prefix(value);
        let value = value / factor;
        let digits = match value.abs() {
            small if small < 10.0 && factor > 1.0 => 2,
            middle if middle < 100.0 && factor > 1.0 => 1,
            _ => 0,
        };
        let text = format!("{value:.digits$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text}{prefix}")
    }

    /// The largest factor, with its prefix, that is not larger than a value.
    pub(super) fn prefix(self, value: f64) -> (f64, &'static str) {
        let (base, prefixes) = match self {
            Self::Bytes => (1024.0_f64, ["", "Ki", "Mi", "Gi", "Ti"]),
            Self::Count => (1000.0, ["", "k", "M", "G", "T"]),
        };
        let mut place = 0;
        while value.abs() >= base.powi(place + 1) && place < 4 {
            place += 1;
        }
        (base.powi(place), prefixes[place as usize])
    }
}

#[cfg(test)]
mod tests {
    use evictlab_rules::quantity::MIB;

    use super::*;

    #[test]
    fn values_have_three_digits() {
        let mi = MIB as f64;
        let bytes = [0.0, 900.0, 4096.0, 512.0 * mi, 1280.0 * mi, 23_377.0 * mi, -3.0 * mi];
        assert_eq!(
            bytes.map(|value| Unit::Bytes.format(value)),
            ["0", "900", "4Ki", "512Mi", "1.25Gi", "22.8Gi", "-3Mi"]
        );
        assert_eq!([7.0, 32_768.0].map(|value| Unit::Count.format(value)), ["7", "32.8k"]);
    }
}
