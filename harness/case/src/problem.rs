//! Problems of case files, displayed with the line that they are in.

use std::fmt;

use crate::positions::Position;
use crate::words::count_noun;

/// Maximum number of characters of a line of a file in a message.
const MAX_LINE: usize = 120;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Description, in one line.
    pub message: String,
    /// Locations, the most important one first.
    pub spans: Vec<SourceSpan>,
}

/// A location in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpan {
    /// Path of the file as the user opens it.
    pub file: String,
    /// Position in the file; `None` for a problem with the file itself.
    pub mark: Option<LineMark>,
    /// Text below the mark, such as `did you mean …?`.
    pub note: String,
}

/// A mark in a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMark {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the line.
    pub text: String,
}

impl LineMark {
    /// Returns the mark at a line and a column of a text, both limited to the range of the text.
    pub fn new(text: &str, line: usize, column: usize) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let line = line.clamp(1, lines.len().max(1));
        let text = lines.get(line - 1).copied().unwrap_or_default().trim_end().to_owned();
        let column = column.clamp(1, text.chars().count() + 1);
        Self { line, column, text }
    }

    /// Returns the length of the marked word or quoted string, in characters.
    fn width(&self) -> usize {
        let rest: Vec<char> = self.text.chars().skip(self.column - 1).collect();
        let end = match rest.first() {
            Some(quote @ ('"' | '\'')) => rest.iter().skip(1).position(|c| c == quote).map(|at| at + 2),
            _ => rest.iter().position(|c| c.is_whitespace() || ",]}".contains(*c)),
        };
        let word = &rest[..end.unwrap_or(rest.len())];
        word.strip_suffix(&[':']).unwrap_or(word).len().max(1)
    }

    /// Returns the part of the line around the column, with `…` for the removed parts, and the line
    /// of carets below it.
    fn excerpt(&self) -> (String, String) {
        let count = self.text.chars().count();
        let at = self.column - 1;
        let first = at.saturating_sub(MAX_LINE / 2).min(count.saturating_sub(MAX_LINE));
        let shown = MAX_LINE.min(count - first);
        let part = self.text.chars().skip(first).take(shown);
        let left = if first > 0 { "…" } else { "" };
        let right = if first + shown < count { "…" } else { "" };
        // Tabs are kept, so that the caret is below its character for any tab width.
        let before: String = part.clone().take(at - first).map(escaped).collect();
        let indent: String =
            left.chars().chain(before.chars()).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let marked: String = part.clone().skip(at - first).take(self.width()).map(escaped).collect();
        let carets = "^".repeat(marked.chars().count().max(1));
        let part: String = part.map(escaped).collect();
        (format!("{left}{part}{right}"), indent + &carets)
    }

    /// Returns whether the line is one of a program or an archive: a reader would not recognize it.
    fn is_binary(&self) -> bool {
        self.text.contains('\0')
    }
}

/// Returns a character as text, with the code of a control character.
fn escaped(c: char) -> String {
    if c.is_control() && c != '\t' { c.escape_unicode().to_string() } else { c.to_string() }
}

impl SourceSpan {
    /// Returns a position in a text, with a note; `file` is the path of the text.
    pub(crate) fn at(file: &str, text: &str, at: Position, note: &str) -> Self {
        let mark = Some(LineMark::new(text, at.line, at.column));
        Self { file: file.to_owned(), mark, note: note.to_owned() }
    }

    /// Writes the location in this form:
    ///
    /// ```text
    ///   --> file:line:column
    ///    |
    /// 12 |   the line
    ///    |       ^^^^ note
    /// ```
    ///
    /// A long line is cut to about 120 characters around the column. A line of a binary file is
    /// left out.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, mark, note } = self;
        let Some(mark) = mark else {
            write!(f, "\n  --> {file}")?;
            return if note.is_empty() { Ok(()) } else { write!(f, "\n      {note}") };
        };
        let LineMark { line, column, .. } = mark;
        if mark.is_binary() {
            write!(f, "\n --> {file}:{line}:{column}")?;
            return if note.is_empty() { Ok(()) } else { write!(f, "\n     {note}") };
        }
        let gutter = " ".repeat(line.to_string().len());
        let (text, carets) = mark.excerpt();
        write!(f, "\n{gutter}--> {file}:{line}:{column}\n{gutter} |\n{line} | {text}\n{gutter} | {carets}")?;
        if note.is_empty() { Ok(()) } else { write!(f, " {note}") }
    }
}

impl Problem {
    /// Returns a problem with a file itself; `file` is its path as the user opens it.
    pub(crate) fn of_file(message: String, file: String) -> Self {
        Self { message, spans: vec![SourceSpan { file, mark: None, note: String::new() }] }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.spans.iter().try_for_each(|span| span.write(f))
    }
}

/// All problems of the case files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadErrors(pub Vec<Problem>);

impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}\n")?;
        }
        let mut files: Vec<_> =
            self.0.iter().flat_map(|one| one.spans.first()).map(|one| &one.file).collect();
        files.sort();
        files.dedup();
        write!(f, "{} in {}", count_noun(self.0.len(), "problem"), count_noun(files.len(), "file"))
    }
}

impl std::error::Error for LoadErrors {}

/// Returns "did you mean `…`?" if one of the candidates is similar.
pub fn did_you_mean<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// Returns the candidate that is most similar to a misspelled word, if any is similar enough.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |candidate: &str| strsim::jaro_winkler(&wrong.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (similarity(candidate), candidate))
        .filter(|(similarity, _)| *similarity >= 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_binary_lines_left_out() {
        let rendered = |text: &str, column| {
            let span = SourceSpan::at("f", text, Position { line: 1, column }, "");
            Problem { message: String::new(), spans: vec![span] }.to_string()
        };
        assert_eq!(
            rendered("a\u{1b}[2J: b\u{7} c", 8),
            "\n --> f:1:8\n  |\n1 | a\\u{1b}[2J: b\\u{7} c\n  |             ^^^^^^"
        );
        assert_eq!(rendered("caf\u{fffd}: 1", 4), "\n --> f:1:4\n  |\n1 | caf\u{fffd}: 1\n  |    ^");
        assert_eq!(rendered("\u{7f}ELF\u{2}\0\0", 5), "\n --> f:1:5");
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let rendered = |text: &str, column| {
            let span = SourceSpan::at("f", text, Position { line: 1, column }, "");
            Problem { message: "m".to_owned(), spans: vec![span] }.to_string()
        };
        let long = format!("{}\"{}\"{}", "ä".repeat(300), "b".repeat(20), " c".repeat(300));
        let expected = format!(
            "1 | …{}\"{}\"{}…\n  | {}{}",
            "ä".repeat(60),
            "b".repeat(20),
            " c".repeat(19),
            " ".repeat(61),
            "^".repeat(22)
        );
        let text = rendered(&long, 301);
        assert!(text.ends_with(&expected), "{text}");
        // The marked word is cut as well, and a column after the end has a caret.
        let word = "b".repeat(500);
        let cut = format!("| {}…\n  | {}", "b".repeat(120), "^".repeat(120));
        assert!(rendered(&word, 1).ends_with(&cut));
        assert!(rendered(&word, 501).ends_with(&format!("| …{}\n  | {}^", "b".repeat(120), " ".repeat(121))));
        let whole = "b".repeat(120);
        assert!(rendered(&whole, 120).ends_with(&format!("| {whole}\n  | {}^", " ".repeat(119))));
        assert!(rendered("a: b", 4).ends_with("1 | a: b\n  |    ^"));
    }
}
