//! Text for a shell, for a Markdown table, and counts with their nouns.

/// Joins `words` into a command line; words with special characters are quoted for `sh`.
pub fn shell_quote(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Escapes `text` for a cell of a Markdown table: one line, pipes escaped.
pub fn markdown_cell(text: &str) -> String {
    text.trim_end().replace('\n', " ").replace('|', "\\|")
}

/// Formats `text` as a code span, verbatim, including leading and trailing spaces.
pub(crate) fn markdown_code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let fence = if text.contains('`') { "``" } else { "`" };
    match text.as_str() {
        "" => "nothing".to_owned(),
        text if fence.len() > 1 => format!("{fence} {text} {fence}"),
        text => format!("{fence}{text}{fence}"),
    }
}

/// Returns `n` with its noun in the singular or plural: `1 case`, `0 cases`, `2 entries`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        return format!("1 {noun}");
    }
    let ends_with = |ends: &[&str]| ends.iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        Some(stem) if !ends_with(&["ay", "ey", "oy", "uy"]) => format!("{n} {stem}ies"),
        _ if ends_with(&["s", "x", "ch", "sh"]) => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_special_characters() {
        let words = ["evictlab", "--focus", "^a b$", "it's", ""].map(str::to_owned);
        assert_eq!(shell_quote(&words), r"evictlab --focus '^a b$' 'it'\''s' ''");
    }

    #[test]
    fn cell_is_one_line_with_escaped_pipes() {
        assert_eq!(markdown_cell("one|two\nthree\n"), r"one\|two three");
    }

    #[test]
    fn nouns_follow_the_count() {
        let rows = [
            (0, "pod", "0 pods"),
            (1, "pod", "1 pod"),
            (2, "known bug", "2 known bugs"),
            (3, "entry", "3 entries"),
            (2, "day", "2 days"),
            (2, "process", "2 processes"),
            (1, "batch", "1 batch"),
            (2, "batch", "2 batches"),
        ];
        for (n, noun, text) in rows {
            assert_eq!(count(n, noun), text);
        }
    }
}
