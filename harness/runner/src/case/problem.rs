//! What is wrong with case files, shown with the line that it is about.

use std::fmt;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, in one line.
    pub what: String,
    /// Where: the first place is the one to go to.
    pub places: Vec<Place>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as a person would open it.
    pub file: String,
    /// The line and what to mark in it; none for a problem with the file itself.
    pub mark: Option<Mark>,
    /// What to say below the mark, such as `did you mean …?`.
    pub note: String,
}

/// A mark in a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The whole line.
    pub text: String,
}

impl Mark {
    /// The mark at a line and a column of a text; both are brought into its range.
    pub fn new(text: &str, line: usize, column: usize) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let line = line.clamp(1, lines.len().max(1));
        let text = lines.get(line - 1).copied().unwrap_or_default().trim_end().to_owned();
        let column = column.clamp(1, text.chars().count() + 1);
        Self { line, column, text }
    }

    /// How many characters from the column on belong together: a word, or a quoted text.
    fn width(&self) -> usize {
        let rest: Vec<char> = self.text.chars().skip(self.column - 1).collect();
        let end = match rest.first() {
            Some(quote @ ('"' | '\'')) => rest.iter().skip(1).position(|c| c == quote).map(|at| at + 2),
            _ => rest.iter().position(|c| c.is_whitespace() || ",]}".contains(*c)),
        };
        let word = &rest[..end.unwrap_or(rest.len())];
        word.strip_suffix(&[':']).unwrap_or(word).len().max(1)
    }
}

impl Place {
    /// ```text
    ///   --> file:line:column
    ///    |
    /// 12 |   the line
    ///    |       ^^^^ note
    /// ```
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, mark, note } = self;
        let Some(mark) = mark else {
            write!(f, "\n  --> {file}")?;
            return if note.is_empty() { Ok(()) } else { write!(f, "\n      {note}") };
        };
        let Mark { line, column, text } = mark;
        let gutter = " ".repeat(line.to_string().len());
        // Tabs stay tabs, so that the caret stands under its character whatever their width.
        let indent: String =
            text.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let carets = "^".repeat(mark.width());
        write!(
            f,
            "\n{gutter}--> {file}:{line}:{column}\n{gutter} |\n{line} | {text}\n{gutter} | {indent}{carets}"
        )?;
        if note.is_empty() { Ok(()) } else { write!(f, " {note}") }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.places.iter().try_for_each(|place| place.write(f))
    }
}

/// Everything that is wrong with the case files, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadErrors(pub Vec<Problem>);

impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}\n")?;
        }
        let mut files: Vec<_> =
            self.0.iter().flat_map(|one| one.places.first()).map(|one| &one.file).collect();
        files.sort();
        files.dedup();
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        write!(f, "{} in {}", count(self.0.len(), "problem"), count(files.len(), "file"))
    }
}

impl std::error::Error for LoadErrors {}

/// "did you mean `…`?", where one of the candidates is near enough to be meant.
pub(crate) fn did_you_mean<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// The candidate that is near enough to a wrong word to be meant.
pub(crate) fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| strsim::jaro_winkler(&wrong.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}
