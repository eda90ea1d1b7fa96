//! Lines of Markdown within the width of a terminal.

use unicode_width::UnicodeWidthStr;

/// Breaks the lines of Markdown between words into lines of at most `width` columns, as far as
/// possible. Tables, headings and code remain as they are: a command that is copied is one line.
pub fn wrap_markdown(text: &str, width: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || line.starts_with(['|', '#']) || line.starts_with("    ") {
            wrapped.push_str(line);
        } else {
            wrap_line(line, width, &mut wrapped);
        }
    }
    wrapped
}

fn wrap_line(line: &str, width: usize, wrapped: &mut String) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let indent = if line[indent..].starts_with("- ") { indent + 2 } else { indent };
    let mut breaks = LineBreaks::new(width, indent);
    for word in words(line) {
        if breaks.is_before(word) {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
        }
        wrapped.push_str(word);
    }
}

/// The places where a text is broken into lines of at most `width` columns, of which all but the
/// first begin with `indent` spaces. A word that is wider than a line has a line of its own.
pub(crate) struct LineBreaks {
    width: usize,
    indent: usize,
    used: usize,
}

impl LineBreaks {
    pub(crate) fn new(width: usize, indent: usize) -> Self {
        Self { width, indent, used: 0 }
    }

    /// Returns whether a line begins with the next word of the text. Spaces at the end of a line do
    /// not count.
    pub(crate) fn is_before(&mut self, word: &str) -> bool {
        let visible = word.trim_end().width();
        let is_before = self.used > self.indent && visible > 0 && self.used + visible > self.width;
        if is_before {
            self.used = self.indent;
        }
        self.used += word.trim_end_matches('\n').width();
        is_before
    }
}

/// Returns the words of a line, each with the space after it. Code is one word.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let (mut words, mut from, mut in_code) = (Vec::new(), 0, false);
    for (at, c) in line.char_indices() {
        in_code ^= c == '`';
        if c == ' ' && !in_code {
            words.push(&line[from..=at]);
            from = at + 1;
        }
    }
    if from < line.len() {
        words.push(&line[from..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let rows = [
            ("one two three\n", "one two\nthree\n"),
            ("- one two three\n", "- one\n  two\n  three\n"),
            ("  one two three", "  one\n  two\n  three"),
            ("a `one two three` b\n", "a\n`one two three`\nb\n"),
            ("| one | two three |\n", "| one | two three |\n"),
            ("### one two three\n", "### one two three\n"),
            ("```\none two three\n```\n", "```\none two three\n```\n"),
            ("    one two three\n", "    one two three\n"),
            ("one-two-three four\n\nfive", "one-two-three\nfour\n\nfive"),
            ("", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(wrap_markdown(text, 8), expected, "{text}");
            assert_eq!(wrap_markdown(text, 80), text);
        }
    }
}
