//! Comments in exported files.

/// Returns a comment of one line, in YAML and in a shell. The text may be another user's: a line
/// end in it would end the comment.
pub(super) fn comment(text: &str) -> String {
    let is_line_end = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    format!("# {}\n", text.replace(is_line_end, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_has_one_line() {
        for text in ["a\nb: 1", "a\rb: 1", "a\r\nb: 1", "a\u{85}b: 1", "a\u{2028}b: 1"] {
            let comment = comment(text);
            assert!(comment.starts_with("# a ") && comment.ends_with("b: 1\n"), "{comment:?}");
            assert_eq!(comment.chars().filter(|c| c.is_control()).count(), 1, "{comment:?}");
        }
    }
}
