//! Command lines to be copied.

/// Words as a shell takes them.
pub fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        let words = ["evictlab", "--focus", "^a b$", "it's", ""].map(str::to_owned);
        assert_eq!(quoted(&words), r"evictlab --focus '^a b$' 'it'\''s' ''");
    }
}
