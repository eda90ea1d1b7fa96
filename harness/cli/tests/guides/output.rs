//! Comparison of the output in a guide with the actual output.

use regex::Regex;

/// Returns the first line of a guide's output that is missing in the actual output. Numbers,
/// durations and spaces may differ, and `…` matches any text.
pub fn missing_line<'a>(shown: &'a str, printed: &str) -> Option<&'a str> {
    shown
        .lines()
        .filter(|line| !line.trim().is_empty())
        .find(|line| !Regex::new(&pattern(line)).unwrap().is_match(printed))
}

fn pattern(line: &str) -> String {
    let part = Regex::new(r"…|\d+m\d\ds|\d+(?:\.\d+)?s\b|\d+|\s+|-{3,}").unwrap();
    let mut pattern = "(?m)^".to_owned();
    let mut end = 0;
    let line = line.trim_end();
    for found in part.find_iter(line) {
        pattern.push_str(&regex::escape(&line[end..found.start()]));
        pattern.push_str(match found.as_str() {
            "…" => ".*",
            dashes if dashes.starts_with('-') => "-+",
            number if number.ends_with('s') => r"(?:\d+m\d\ds|\d+(?:\.\d+)?s)",
            number if number.starts_with(|c: char| c.is_ascii_digit()) => r"\d+",
            _ => r"[ \t]+",
        });
        end = found.end();
    }
    pattern + &regex::escape(&line[end..]) + r"\s*$"
}
