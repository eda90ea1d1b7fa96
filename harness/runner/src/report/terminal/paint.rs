//! Text with colours, and text made safe for a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::judge::Verdict;

/// How a piece of text is shown, as a Select Graphic Rendition of ECMA-48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
    Magenta,
}

impl Ink {
    /// The ink of a verdict's word.
    pub fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::Green,
            Verdict::Failed | Verdict::Error => Self::Red,
            Verdict::Reproduced => Self::Cyan,
            Verdict::Fixed => Self::Magenta,
            Verdict::Inconclusive => Self::Yellow,
            Verdict::Skipped => Self::Dim,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
            Self::Magenta => "35",
        }
    }

    /// `text` in this ink, if there are colours.
    pub fn on(self, text: &str, colour: bool) -> String {
        if !colour || self == Self::Plain {
            text.to_owned()
        } else {
            format!("\x1b[{}m{text}\x1b[0m", self.code())
        }
    }
}

/// One line, in pieces. It holds no control characters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<(String, Ink)>);

impl Line {
    /// Adds a piece.
    pub fn push(&mut self, text: &str, ink: Ink) {
        self.0.push((one_line(text), ink));
    }

    /// Adds a piece, and spaces up to `width` columns.
    pub fn push_padded(&mut self, text: &str, ink: Ink, width: usize) {
        let text = fit(&one_line(text), width);
        let spaces = width.saturating_sub(text.width());
        self.0.push((text, ink));
        self.0.push((" ".repeat(spaces), Ink::Plain));
    }

    /// Adds spaces and then a piece, `width` columns in all.
    pub fn push_padded_left(&mut self, text: &str, width: usize) {
        let spaces = width.saturating_sub(text.width());
        self.0.push((format!("{}{text}", " ".repeat(spaces)), Ink::Plain));
    }

    /// Adds the space between two columns.
    pub fn gap(&mut self) {
        self.raw("  ");
    }

    /// Adds text of our own, its spaces included.
    pub fn raw(&mut self, text: &'static str) {
        self.0.push((text.to_owned(), Ink::Plain));
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }

    /// The line in at most `width` columns, without spaces at its end.
    pub fn cut(mut self, width: usize) -> Self {
        let mut left = width;
        for (text, _) in &mut self.0 {
            *text = fit(text, left);
            left = left.saturating_sub(text.width());
        }
        while let Some((text, _)) = self.0.last_mut() {
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    /// The line as it is written.
    pub fn text(&self, colour: bool) -> String {
        self.0.iter().map(|(text, ink)| ink.on(text, colour)).collect()
    }
}

/// `text` in at most `width` columns; what is cut ends with an ellipsis.
pub(super) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// `text` without anything that moves a cursor: what a kubelet or a container says goes to a person's terminal.
pub(super) fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Markdown for a terminal: verdicts in the matrix and in headings, and differences, in their inks.
pub(super) fn markdown(text: &str, colour: bool) -> String {
    let mut in_diff = false;
    let mut painted = String::new();
    for line in text.lines() {
        let safe: String = line.chars().filter(|c| !c.is_control()).collect();
        let fence = safe.starts_with("```");
        if fence {
            in_diff = safe == "```diff";
        }
        painted.push_str(&match safe.as_bytes().first() {
            Some(b'+') if in_diff => Ink::Green.on(&safe, colour),
            Some(b'-') if in_diff => Ink::Red.on(&safe, colour),
            Some(b'|') if !in_diff => matrix_row(&safe, colour),
            Some(b'#') if !in_diff => heading(&safe, colour),
            _ => safe,
        });
        painted.push('\n');
    }
    painted
}

const VERDICTS: [Verdict; 7] = [
    Verdict::Passed,
    Verdict::Failed,
    Verdict::Reproduced,
    Verdict::Fixed,
    Verdict::Inconclusive,
    Verdict::Skipped,
    Verdict::Error,
];

fn matrix_row(row: &str, colour: bool) -> String {
    let mut cells = row.splitn(3, '|');
    let (Some(edge), Some(name), Some(rest)) = (cells.next(), cells.next(), cells.next()) else {
        return row.to_owned();
    };
    let rest = VERDICTS.iter().fold(rest.to_owned(), |rest, verdict| {
        rest.replace(
            &format!(" {verdict}"),
            &format!(" {}", Ink::of(*verdict).on(&verdict.to_string(), colour)),
        )
    });
    format!("{edge}|{name}|{rest}")
}

fn heading(line: &str, colour: bool) -> String {
    let verdict = VERDICTS.into_iter().find(|verdict| {
        line.strip_prefix("### ").is_some_and(|line| line.starts_with(verdict.to_string().as_str()))
    });
    match verdict.map(|verdict| (verdict, 4 + verdict.to_string().len())) {
        Some((verdict, end)) => {
            Ink::of(verdict).on(&line[..end], colour) + &Ink::Bold.on(&line[end..], colour)
        }
        None => Ink::Bold.on(line, colour),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns() {
        for (text, width, cut) in [
            ("observe", 7, "observe"),
            ("observe", 4, "obs…"),
            ("観察する", 5, "観察…"),
            ("観察する", 4, "観…"),
            ("observe", 1, "…"),
            ("observe", 0, ""),
        ] {
            assert_eq!(fit(text, width), cut);
        }
    }

    #[test]
    fn nothing_said_moves_the_cursor() {
        let mut line = Line::default();
        line.push("\x1b[2Jgone\r\n", Ink::Red);
        assert_eq!(line.text(true), "\x1b[31m [2Jgone\x1b[0m");
        assert_eq!(line.text(false), " [2Jgone");
        assert_eq!(markdown("a\x1b[2J\u{7}b\n", true), "a[2Jb\n");
    }

    #[test]
    fn markdown_is_painted_where_it_means_something() {
        let text = "| failed-pods | failed 8.2s |\n### failed: x\n```diff\n-a\n+b\n```\n- failed\n";
        let painted = "| failed-pods | \x1b[31mfailed\x1b[0m 8.2s |\n\x1b[31m### failed\x1b[0m\x1b[1m: x\x1b[0m\n\
            ```diff\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n```\n- failed\n";
        assert_eq!(markdown(text, true), painted);
        assert_eq!(markdown(text, false), text);
    }
}
