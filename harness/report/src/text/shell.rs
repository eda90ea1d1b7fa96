//! Command lines for a shell.

/// Joins words into a command line for `sh`; words with special characters are quoted.
pub fn shell_quote(words: &[impl AsRef<str>]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word =
        |word: &str| if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { quoted(word) };
    words.iter().map(|one| word(one.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Joins the words of an evictlab command into a command line that can be pasted. If the command
/// reads a case from standard input, a file stands for it, so that the shell does not wait for
/// input.
pub fn evictlab_command(words: &[impl AsRef<str>]) -> String {
    let input = if words.iter().any(|word| word.as_ref() == STDIN) { " < case.yaml" } else { "" };
    shell_quote(words) + input
}

/// The word for a case from standard input.
pub(crate) const STDIN: &str = "-";

/// Joins words into one quoted word for `sh`, such as the value of a variable over whose parts a
/// script loops.
pub fn shell_quote_list(words: &[impl AsRef<str>]) -> String {
    quoted(&words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" "))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        let words = ["evictlab", "--focus", "^a b$", "it's", ""];
        assert_eq!(shell_quote(&words), r"evictlab --focus '^a b$' 'it'\''s' ''");
        assert_eq!(evictlab_command(&["evictlab", "run", "a b"]), "evictlab run 'a b'");
        assert_eq!(evictlab_command(&["evictlab", "run", "-", "-v"]), "evictlab run - -v < case.yaml");
        assert_eq!(shell_quote_list(&["a", "it's"]), r"'a it'\''s'");
    }
}
