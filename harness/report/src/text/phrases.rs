//! Lists and ranges of names, first lines, and durations.

/// Returns the first line; empty for an empty text.
pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Joins at most `max` texts with commas and counts the others: `a, b and 2 more`.
pub fn first_of(texts: &[String], max: usize) -> String {
    let (first, others) = texts.split_at(texts.len().min(max));
    match others.len() {
        0 => first.join(", "),
        others => format!("{} and {others} more", first.join(", ")),
    }
}

/// Lists the names of a sequence that are marked, with three and more neighbours as a range:
/// `v1.27, v1.29 to v1.31`.
pub fn marked_ranges(names: impl IntoIterator<Item = (String, bool)>) -> String {
    let mut ranges: Vec<Vec<String>> = vec![];
    let mut is_next = false;
    for (name, is_marked) in names {
        match ranges.last_mut().filter(|_| is_next && is_marked) {
            Some(range) => range.push(name),
            None if is_marked => ranges.push(vec![name]),
            None => {}
        }
        is_next = is_marked;
    }
    let range = |range: &Vec<String>| match &range[..] {
        [first, _, .., last] => format!("{first} to {last}"),
        few => few.join(", "),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// Formats seconds: `8.2s`, `1m05s`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 59.95 {
        return format!("{seconds:.1}s");
    }
    let whole = seconds.round() as u64;
    format!("{}m{:02}s", whole / 60, whole % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_ranges() {
        for (marks, expected) in [
            ("111111", "0 to 5"),
            ("11....", "0, 1"),
            ("1.111.", "0, 2 to 4"),
            ("....1.", "4"),
            ("......", ""),
        ] {
            let names =
                (0..).zip(marks.chars()).map(|(nth, mark): (u8, char)| (nth.to_string(), mark == '1'));
            assert_eq!(marked_ranges(names), expected, "{marks}");
        }
    }

    #[test]
    fn formats_durations() {
        for (seconds, text) in
            [(0.04, "0.0s"), (8.24, "8.2s"), (59.96, "1m00s"), (65.4, "1m05s"), (3599.0, "59m59s")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
