//! Text with colors and without control characters.

use crate::symbols;
use crate::text::{LineBreaks, truncate, without_workflow_commands, words};
use unicode_width::UnicodeWidthStr;

use evictlab_judge::Verdict;

/// Style of a piece of text: a Select Graphic Rendition parameter of ECMA-48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The default.
    Plain,
    /// Bold.
    Bold,
    /// Dim.
    Dim,
    /// Red.
    Red,
    /// Green.
    Green,
    /// Yellow.
    Yellow,
    /// Cyan.
    Cyan,
    /// Magenta.
    Magenta,
}

impl Style {
    /// The style of a verdict.
    pub fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::Green,
            Verdict::Failed | Verdict::Error => Self::Red,
            Verdict::Reproduced => Self::Cyan,
            Verdict::Fixed => Self::Magenta,
            Verdict::Flaky | Verdict::Inconclusive => Self::Yellow,
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

    /// Wraps `text` in escape sequences for this style if `color` is set.
    pub fn on(self, text: &str, color: bool) -> String {
        if !color || self == Self::Plain {
            text.to_owned()
        } else {
            format!("\x1b[{}m{text}\x1b[0m", self.code())
        }
    }
}

/// A line of styled pieces without control characters.
#[derive(Clone, Debug, Default)]
pub struct Line(Vec<(String, Style)>);

impl Line {
    /// Adds a piece.
    pub fn push(&mut self, text: &str, style: Style) {
        self.0.push((strip_controls(text), style));
    }

    /// Adds a piece, padded or truncated to `width` columns.
    pub fn push_padded(&mut self, text: &str, style: Style, width: usize) {
        let text = truncate(&strip_controls(text), width);
        let spaces = width.saturating_sub(text.width());
        self.0.push((text, style));
        self.0.push((" ".repeat(spaces), Style::Plain));
    }

    /// Adds a piece, right-aligned in `width` columns.
    pub fn push_padded_left(&mut self, text: &str, width: usize) {
        let spaces = width.saturating_sub(text.width());
        self.0.push((format!("{}{text}", " ".repeat(spaces)), Style::Plain));
    }

    /// Adds the space between two columns.
    pub fn gap(&mut self) {
        self.raw("  ");
    }

    /// Adds `width` spaces.
    pub fn indent(&mut self, width: usize) {
        self.0.push((" ".repeat(width), Style::Plain));
    }

    /// Adds literal text, including leading and trailing spaces.
    pub fn raw(&mut self, text: &'static str) {
        self.0.push((text.to_owned(), Style::Plain));
    }

    /// Puts the mark of a selected line, or the same width of spaces, before the line.
    pub fn marked(mut self, is_selected: bool) -> Self {
        let mark = if is_selected { "▸ " } else { "  " };
        self.0.insert(0, (mark.to_owned(), Style::Cyan));
        self
    }

    /// Width of the line in columns.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }

    /// Truncates the line to `width` columns and removes trailing spaces.
    pub fn cut(mut self, width: usize) -> Self {
        let mut left = width;
        for (text, _) in &mut self.0 {
            *text = truncate(text, left);
            left = left.saturating_sub(text.width());
        }
        self.trim_end()
    }

    /// Removes trailing spaces.
    pub(super) fn trim_end(mut self) -> Self {
        while let Some((text, _)) = self.0.last_mut() {
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    /// Breaks the line between words into lines of at most `width` columns, if possible. All but
    /// the first begin with `indent` spaces. Code in backticks is one word.
    pub fn wrapped(&self, width: usize, indent: usize) -> Vec<Self> {
        let (mut lines, mut line) = (vec![], Self::default());
        let mut breaks = LineBreaks::new(width, indent);
        for (text, style) in &self.0 {
            for word in words(text) {
                if breaks.is_before(word) {
                    lines.push(line);
                    line = Self(vec![(" ".repeat(indent), Style::Plain)]);
                }
                match line.0.last_mut().filter(|(_, last)| last == style) {
                    Some((text, _)) => text.push_str(word),
                    None => line.0.push((word.to_owned(), *style)),
                }
            }
        }
        lines.push(line);
        lines
    }

    /// Renders the line. Workflow commands of GitHub in it have no effect.
    pub fn text(&self, color: bool) -> String {
        let text: String = self.0.iter().map(|(text, style)| style.on(text, color)).collect();
        without_workflow_commands(&text).into_owned()
    }
}

/// Replaces control characters by spaces: text of kubelets and containers must not move the cursor.
fn strip_controls(text: &str) -> String {
    text.trim().chars().map(|c| if controls_terminal(c) { ' ' } else { c }).collect()
}

/// Returns whether a character moves the cursor, or reverses the direction of what follows.
fn controls_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Colors Markdown for a terminal: verdicts in the matrix and in headings, and diffs.
pub fn color_markdown(text: &str, color: bool) -> String {
    let mut in_diff = false;
    let mut painted = String::new();
    // First the control characters: without them, what follows one may begin a line.
    let text: String = text.chars().filter(|c| *c == '\n' || !controls_terminal(*c)).collect();
    for safe in without_workflow_commands(&text).lines().map(str::to_owned) {
        let fence = safe.starts_with("```");
        if fence {
            in_diff = safe == "```diff";
        }
        painted.push_str(&match safe.as_bytes().first() {
            Some(b'+') if in_diff => Style::Green.on(&safe, color),
            Some(b'-') if in_diff => Style::Red.on(&safe, color),
            Some(b'|') if !in_diff => matrix_row(&safe, color),
            Some(b'#') if !in_diff => heading(&safe, color),
            _ => safe,
        });
        painted.push('\n');
    }
    painted
}

const VERDICTS: [Verdict; 8] = [
    Verdict::Passed,
    Verdict::Flaky,
    Verdict::Failed,
    Verdict::Reproduced,
    Verdict::Fixed,
    Verdict::Inconclusive,
    Verdict::Skipped,
    Verdict::Error,
];

fn matrix_row(row: &str, color: bool) -> String {
    let mut cells = row.splitn(3, '|');
    let (Some(edge), Some(name), Some(rest)) = (cells.next(), cells.next(), cells.next()) else {
        return row.to_owned();
    };
    if let Some(cell) =
        rest.strip_suffix('|').filter(|cell| !name.starts_with('-') && is_symbols(cell.trim()))
    {
        let symbol = |c: char| match symbols::verdict(c) {
            Some(verdict) => Style::of(verdict).on(&c.to_string(), color),
            None => c.to_string(),
        };
        return format!("{edge}|{name}|{}|", cell.chars().map(symbol).collect::<String>());
    }
    let rest = VERDICTS.iter().fold(rest.to_owned(), |rest, verdict| {
        rest.replace(
            &format!(" {verdict}"),
            &format!(" {}", Style::of(*verdict).on(&verdict.to_string(), color)),
        )
    });
    format!("{edge}|{name}|{rest}")
}

/// Returns whether a cell contains the verdicts of the compact matrix.
fn is_symbols(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| c == symbols::NOT_RUN || symbols::verdict(c).is_some())
}

fn heading(line: &str, color: bool) -> String {
    let verdict = VERDICTS.into_iter().find(|verdict| {
        line.strip_prefix("### ").is_some_and(|line| line.starts_with(verdict.to_string().as_str()))
    });
    match verdict.map(|verdict| (verdict, 4 + verdict.to_string().len())) {
        Some((verdict, end)) => {
            Style::of(verdict).on(&line[..end], color) + &Style::Bold.on(&line[end..], color)
        }
        None => Style::Bold.on(line, color),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_control_characters() {
        let mut line = Line::default();
        line.push("\x1b[2Jgone\r\n", Style::Red);
        assert_eq!(line.text(true), "\x1b[31m [2Jgone\x1b[0m");
        assert_eq!(line.text(false), " [2Jgone");
        assert_eq!(color_markdown("a\x1b[2J\u{7}b\n", true), "a[2Jb\n");
        let command = color_markdown("\u{202e}::set-output name=a::b\n", false);
        assert!(!command.starts_with("::"), "{command:?}");
    }

    #[test]
    fn wraps_between_words() {
        let mut line = Line::default();
        line.push("warning", Style::Yellow);
        line.gap();
        line.push("evictionHard sets only memory.available", Style::Plain);
        let texts = |width: usize| -> Vec<String> {
            line.wrapped(width, 3).iter().map(|line| line.text(false).trim_end().to_owned()).collect()
        };
        assert_eq!(texts(80), ["warning  evictionHard sets only memory.available"]);
        assert_eq!(texts(48), ["warning  evictionHard sets only memory.available"]);
        assert_eq!(texts(47), ["warning  evictionHard sets only", "   memory.available"]);
        assert_eq!(
            texts(10),
            ["warning", "   evictionHard", "   sets", "   only", "   memory.available"],
            "a word is not broken"
        );
        assert_eq!(line.wrapped(10, 3)[0].text(true).trim_end(), "\x1b[33mwarning\x1b[0m");
    }

    #[test]
    fn colors_verdicts_and_diffs_only() {
        let text = "| failed-pods | failed 8.2s |\n|----|----|\n| EF | .F |\n### failed: x\n```diff\n-a\n+b\n```\n- failed\n";
        let painted = "| failed-pods | \x1b[31mfailed\x1b[0m 8.2s |\n|----|----|\n| EF | \x1b[32m.\x1b[0m\x1b[31mF\x1b[0m |\n\x1b[31m### failed\x1b[0m\x1b[1m: x\x1b[0m\n\
            ```diff\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n```\n- failed\n";
        assert_eq!(color_markdown(text, true), painted);
        assert_eq!(color_markdown(text, false), text);
    }
}
