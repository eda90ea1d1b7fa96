//! Text as what is to read it takes it: a shell, a table.

/// Words as a shell takes them.
pub fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Text as a cell of a Markdown table takes it.
pub fn in_a_cell(text: &str) -> String {
    text.trim_end().replace(['|', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        let words = ["evictlab", "--focus", "^a b$", "it's", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"evictlab --focus '^a b$' 'it'\''s' ''");
    }

    #[test]
    fn a_cell_is_one_line_of_one_column() {
        assert_eq!(in_a_cell("one|two\nthree\n"), "one two three");
    }
}
