//! A position in a text that other programs wrapped, quoted or escaped.

use evictlab_rules::quantity::Quantity;

/// A position in a text. Words may be separated by any space, and broken over two lines.
#[derive(Clone, Copy)]
pub(crate) struct TextCursor<'a> {
    pub text: &'a str,
    pub at: usize,
}

/// Ends of a message that a table or a chat shortened.
const ELLIPSES: [&str; 5] = ["…", "..", "[...]", "[truncated]", "(truncated)"];
/// Quotes and other marks around a name or an amount: of shells, CSV, word processors, Markdown and
/// HTML, whose escapes may be escaped again.
pub(crate) const MARKS: [&str; 46] = [
    "「",
    "」",
    "『",
    "』",
    "\"",
    "'",
    "`",
    "*",
    "“",
    "”",
    "„",
    "‟",
    "‘",
    "’",
    "‚",
    "«",
    "»",
    "‹",
    "›",
    "&quot;",
    "&apos;",
    "&#34;",
    "&#39;",
    "&#039;",
    "&#x22;",
    "&#x27;",
    "&#96;",
    "&ldquo;",
    "&rdquo;",
    "&lsquo;",
    "&rsquo;",
    "&laquo;",
    "&raquo;",
    "&amp;quot;",
    "&amp;#34;",
    "&amp;#39;",
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<em>",
    "</em>",
    "<code>",
    "</code>",
    "<strong>",
    "</strong>",
];
/// Maximum number of bytes of a name.
const MAX_NAME: usize = 253;
/// Maximum number of marks on one side of a name.
const MAX_MARKS: usize = 8;

impl<'a> TextCursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips words if the text continues with them; a space stands for any space. Returns whether
    /// it did.
    pub(crate) fn skip(&mut self, words: &str) -> bool {
        let end = match_words(self.rest(), words);
        if let Ok(length) = end {
            self.at += length;
        }
        end.is_ok()
    }

    /// Skips marks and words if the text continues with them, or with the words alone.
    pub(crate) fn skip_after_marks(&mut self, words: &str) -> bool {
        let mut after = *self;
        let found = after.skip(words) || (after.skip_marks() && after.skip(words));
        if found {
            *self = after;
        }
        found
    }

    /// Skips quotes and other marks, escaped or not. Returns whether there was one.
    pub(crate) fn skip_marks(&mut self) -> bool {
        let start = self.at;
        for _ in 0..MAX_MARKS {
            let rest = self.rest().trim_start_matches('\\');
            let Some(after) = MARKS.iter().find_map(|mark| rest.strip_prefix(mark)) else { break };
            self.at = self.text.len() - after.len();
        }
        self.at > start
    }

    /// Returns whether the text, or its line, ends after some of these words.
    pub(crate) fn ends_within(&self, words: &str) -> bool {
        let matched = match_words(self.rest(), words).err().filter(|matched| *matched > 0);
        matched.is_some_and(|matched| Self { at: self.at + matched, ..*self }.is_at_end())
    }

    /// Returns whether the text ends after a name, with or without marks, and some of these words.
    pub(crate) fn ends_within_name(&self, words: &str) -> bool {
        if self.is_at_end() {
            return true;
        }
        let mut after = *self;
        after.skip_marks();
        after.at += name_length(after.rest());
        if after.is_at_end() || after.ends_within(words) {
            return true;
        }
        after.skip_marks() && after.ends_within(words)
    }

    /// Returns whether the text ends after letters and digits, with or without marks.
    pub(crate) fn ends_within_word(&self) -> bool {
        let mut after = *self;
        after.skip_marks();
        after.take_while(|c| c.is_ascii_alphanumeric());
        after.is_at_end()
    }

    /// Returns whether the text, its line, or a value in quotes ends here, or after marks.
    pub(crate) fn is_at_end(&self) -> bool {
        let mut after = *self;
        after.skip_marks();
        [*self, after].into_iter().any(|cursor| {
            let rest = cursor.rest().trim_start_matches([' ', '\t', '\r', '\\']);
            rest.is_empty()
                || rest.starts_with(['\n', '"'])
                || ends_within_mark(rest)
                || cursor.is_at_ellipsis()
        })
    }

    pub(crate) fn is_at_ellipsis(&self) -> bool {
        let rest = self.rest().trim_start_matches([' ', '\t']);
        ELLIPSES.iter().any(|ellipsis| rest.starts_with(ellipsis))
    }

    pub(crate) fn skip_ellipsis(&mut self) {
        if self.is_at_ellipsis() {
            let rest = self.rest().trim_start_matches([' ', '\t']);
            let after = ELLIPSES.iter().find_map(|ellipsis| rest.strip_prefix(ellipsis)).unwrap_or(rest);
            self.at = self.text.len() - after.trim_start_matches('.').len();
        }
    }

    /// Reads a name, with or without marks, and skips the words after it.
    pub(crate) fn name(&mut self, then: &str) -> Option<String> {
        let mut name = String::new();
        let mut cursor = *self;
        cursor.skip_marks();
        loop {
            let part = &cursor.rest()[..name_length(cursor.rest())];
            cursor.at += part.len();
            name.push_str(part);
            if part.is_empty() || name.len() > MAX_NAME {
                return None;
            }
            if cursor.skip_after_marks(then) {
                *self = cursor;
                return Some(name);
            }
            let line_break = line_break(cursor.rest());
            if line_break == 0 {
                return None;
            }
            cursor.at += line_break;
        }
    }

    /// Reads a quantity, with or without marks, and skips the words after it.
    pub(crate) fn quantity(&mut self, then: &str) -> Option<Quantity> {
        let mut text = String::new();
        self.skip_marks();
        loop {
            text.push_str(self.take_while(|c| c.is_ascii_alphanumeric()));
            let rest = self.rest();
            let line_break = line_break(rest);
            let is_fraction =
                rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if is_fraction {
                text.push('.');
                self.at += 1;
            } else if line_break > 0 && rest[line_break..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
                self.at += line_break;
            } else {
                break;
            }
            if text.len() > MAX_NAME {
                return None;
            }
        }
        Quantity::parse_verbatim(&text).ok().filter(|_| self.skip_after_marks(then))
    }

    /// Reads a quantity in quotes at the end of a message.
    pub(crate) fn quoted_quantity(&mut self) -> Option<Quantity> {
        let is_quoted = self.skip_marks();
        let quantity = self.quantity("")?;
        let is_whole = if is_quoted { self.skip_marks() } else { self.rest().starts_with('.') };
        self.skip(".");
        is_whole.then_some(quantity)
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let taken = &self.rest()[..length_while(self.rest(), accept)];
        self.at += taken.len();
        taken
    }
}

/// Returns whether the text, or its line, ends within or after a mark.
fn ends_within_mark(text: &str) -> bool {
    MARKS.iter().any(|mark| {
        let matched = text.bytes().zip(mark.bytes()).take_while(|(one, other)| one == other).count();
        matched > 0 && matches!(text.as_bytes().get(matched), None | Some(b'\n' | b'\r'))
    })
}

/// Returns the length of the name at the beginning of a text. A name does not end with a dot.
fn name_length(text: &str) -> usize {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = &text[..length_while(text, is_of_name)];
    let name = &name[..name.find("..").unwrap_or(name.len())];
    name.trim_end_matches('.').len()
}

/// Returns the length of the accepted characters at the beginning of a text, which are ASCII: at
/// most a little more than a name can have, so that a long word is not read once for each part of
/// it.
fn length_while(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.chars().take(MAX_NAME + 1).take_while(|c| c.is_ascii() && accept(*c)).count()
}

/// Returns the length of the text that matches the words, or of the part that does, without the
/// space at its end.
fn match_words(text: &str, words: &str) -> Result<usize, usize> {
    let (mut at, mut matched) = (0, 0);
    for expected in words.chars() {
        let rest = &text[at..];
        if expected == ' ' {
            at += space(rest);
            continue;
        }
        let line_break = line_break(rest);
        if !rest[line_break..].starts_with(expected) {
            return Err(matched);
        }
        at += line_break + expected.len_utf8();
        matched = at;
    }
    Ok(at)
}

/// Returns the length of the space at the beginning of a text, with at most one line break, which
/// may be escaped as in YAML.
fn space(text: &str) -> usize {
    let is_space = |c: char| c.is_whitespace() && c != '\n';
    let rest = text.trim_start_matches(is_space);
    let Some(next) = rest.strip_prefix('\\').unwrap_or(rest).strip_prefix('\n') else {
        return text.len() - rest.len();
    };
    let next = next.trim_start_matches(is_space);
    text.len() - next.strip_prefix("\\ ").unwrap_or(next).len()
}

/// Returns the length of a line break at the beginning of a text, with the space around it; 0 if
/// the line continues.
fn line_break(text: &str) -> usize {
    let end = space(text);
    if text[..end].contains('\n') { end } else { 0 }
}
