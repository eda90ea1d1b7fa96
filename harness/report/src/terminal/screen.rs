//! Lines at the bottom of a terminal that are redrawn in place.

use std::io::{self, Write};

use super::style::Line;

/// Erases the line of the cursor and everything below it. `ESC [ J` is written on the second line:
/// in the first row of the screen, tmux would move what it erases to the scrollback.
const ERASE_BELOW: &str = "\r\x1b[K\n\x1b[J\x1b[A";

/// Lines that are too wide for the terminal are truncated (DECAWM).
const WRAP_OFF: &str = "\x1b[?7l";
/// They wrap again, as is usual.
const WRAP_ON: &str = "\x1b[?7h";

/// Saves and restores the position of the cursor (DECSC, DECRC).
const SAVE_CURSOR: &str = "\x1b7";
const RESTORE_CURSOR: &str = "\x1b8";
/// Moves the cursor to the first column of the last row: terminals limit the number of the row.
const LAST_ROW: &str = "\x1b[999;1H";

/// Place of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    /// Below the permanent lines.
    Inline,
    /// In the last rows of the terminal.
    Bottom,
}

/// Draws a block of lines over the previous one. The cursor stays visible, in the first column
/// below the permanent lines and above the block: terminals that wrap lines again when they become
/// narrower move it with its line, so that the whole block is below it, however many rows it takes
/// now.
///
/// Nothing depends on the exact size of the terminal, which may be out of date: tmux changes its
/// screen up to 250 ms before it tells the program. tmux also counts blank rows: lines that wrap
/// move as many rows from the top of the screen to the scrollback, even if the screen is empty
/// below them. A block of several lines is therefore in the last rows of the terminal, so that
/// these rows are permanent lines, or empty. It stays on the screen if its lines, wrapped, take no
/// more rows than the terminal has.
///
/// Not indicatif: it moves up from the end of its block by the number of rows at the width that it
/// knows, so that remains of each drawing stay above the next. Not ratatui: its inline viewport
/// asks the terminal for the position of the cursor, on standard input.
#[derive(Debug)]
pub struct Screen<W: Write> {
    out: W,
    color: bool,
    placement: Placement,
    /// Number of drawn lines.
    drawn: usize,
    /// The drawn lines, and the width of the terminal.
    last: (String, usize),
}

impl<W: Write> Screen<W> {
    /// Wraps a terminal, with the block directly below the permanent lines. Without `color`, no
    /// escape sequences for colors are written.
    pub fn new(out: W, color: bool) -> Self {
        Self::at(Placement::Inline, out, color)
    }

    fn at(placement: Placement, out: W, color: bool) -> Self {
        Self { out, color, placement, drawn: 0, last: (String::new(), 0) }
    }

    /// Wraps a terminal, with the block in its last rows.
    pub fn with_bottom_block(out: W, color: bool) -> Self {
        Self::at(Placement::Bottom, out, color)
    }

    /// Number of lines of the block.
    #[cfg(test)]
    pub(super) fn drawn_lines(&self) -> usize {
        self.drawn
    }

    /// Writes `above` permanently and replaces the previous block by `block` below it. Lines are
    /// truncated to `columns`. A block that is drawn already is not written again.
    ///
    /// # Errors
    /// The terminal could not be written.
    pub fn draw(&mut self, above: &str, block: Vec<Line>, columns: usize) -> io::Result<()> {
        let lines: Vec<String> =
            block.into_iter().map(|line| line.cut(columns.saturating_sub(1)).text(self.color)).collect();
        let block = lines.join("\n");
        if above.is_empty() && self.last.0 == block && self.last.1 == columns {
            return Ok(());
        }
        let mut text = String::new();
        if self.drawn > 0 {
            text.push_str(ERASE_BELOW);
        }
        text.push_str(above);
        if !lines.is_empty() {
            let drawn = match self.placement {
                Placement::Inline => inline_block(&lines),
                Placement::Bottom => bottom_block(&lines),
            };
            text.push_str(&format!("{WRAP_OFF}{drawn}{WRAP_ON}"));
        }
        self.drawn = lines.len();
        self.last = (block, columns);
        // One write, so that no terminal shows a partial block.
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// Draws lines from the row of the cursor, where the cursor stays.
fn inline_block(lines: &[String]) -> String {
    format!("{}\n\x1b[{}A", lines.join("\n"), lines.len())
}

/// Draws lines in the last rows of the terminal, below the row of the cursor, where the cursor
/// stays. Moves it up if there are too few rows below it. Only that may scroll: on a terminal that
/// has fewer rows by now, the lines overwrite each other.
fn bottom_block(lines: &[String]) -> String {
    let count = lines.len();
    let mut text = format!("{}\x1b[{count}A{SAVE_CURSOR}", "\n".repeat(count));
    for (line, up) in lines.iter().zip((0..count).rev()) {
        text.push_str(LAST_ROW);
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push_str(line);
    }
    text + RESTORE_CURSOR
}

impl<W: Write> Drop for Screen<W> {
    /// Leaves the cursor below the block, for what is written next.
    fn drop(&mut self) {
        let below = match self.placement {
            _ if self.drawn == 0 => return,
            Placement::Inline => "\n".repeat(self.drawn),
            Placement::Bottom => format!("{LAST_ROW}\n"),
        };
        let _ignored = self.out.write_all(below.as_bytes()).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::style::Style;

    const ROWS: u16 = 24;

    /// The lines of a block, wider than 40 columns but for the last.
    fn block() -> Vec<Line> {
        let texts = ["a".repeat(79), "b".repeat(60), "c".repeat(41), "d".to_owned()];
        let line = |text: &String| {
            let mut line = Line::default();
            line.push(text, Style::Plain);
            line
        };
        texts.iter().map(line).collect()
    }

    fn process(terminal: &mut vt100::Parser, screen: &mut Screen<Vec<u8>>) {
        let text = String::from_utf8(std::mem::take(&mut screen.out)).unwrap();
        terminal.process(text.replace('\n', "\r\n").as_bytes());
    }

    fn visible(terminal: &vt100::Parser) -> Vec<String> {
        let columns = terminal.screen().size().1;
        terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
    }

    fn scrolled_off(terminal: &mut vt100::Parser) -> Vec<String> {
        let screen = terminal.screen_mut();
        screen.set_scrollback(usize::MAX);
        let mut rows = vec![];
        for offset in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(offset);
            let columns = screen.size().1;
            rows.extend(screen.rows(0, columns).next().map(|row| row.trim_end().to_owned()));
        }
        screen.set_scrollback(0);
        rows
    }

    fn terminal(columns: u16, lines_before: usize) -> vt100::Parser {
        let mut terminal = vt100::Parser::new(ROWS, columns, 1000);
        (0..lines_before).for_each(|_| terminal.process(b"before\r\n"));
        terminal
    }

    /// The terminal with another width, as tmux does it: lines are wrapped again, each further row
    /// moves one from the top to the scrollback, even if the last rows are empty, and the cursor
    /// stays in its line, or is in the first row.
    fn rewrapped(mut before: vt100::Parser, columns: u16) -> vt100::Parser {
        let history = scrolled_off(&mut before);
        let cursor = history.len() + usize::from(before.screen().cursor_position().0);
        let rows: Vec<String> = [history, visible(&before)].concat();
        let wrapped = |row: &String| row.chars().count().div_ceil(usize::from(columns)).max(1);
        let total: usize = rows.iter().map(wrapped).sum();
        let cursor: usize = rows[..cursor].iter().map(wrapped).sum();
        let mut after = vt100::Parser::new(ROWS, columns, 1000);
        after.process(rows.join("\r\n").as_bytes());
        let row = (cursor + 1).saturating_sub(total - usize::from(ROWS)).max(1);
        after.process(format!("\x1b[{row};1H").as_bytes());
        after
    }

    #[test]
    fn a_narrower_terminal_is_redrawn_completely() {
        for lines_before in [0, 1, 12, 50] {
            let mut screen = Screen::with_bottom_block(vec![], false);
            let mut terminal = terminal(80, lines_before);
            screen.draw("first result\n", block(), 80).unwrap();
            process(&mut terminal, &mut screen);
            let mut terminal = rewrapped(terminal, 40);
            assert_eq!(visible(&terminal)[17..19], ["a".repeat(40), "a".repeat(39)]);
            screen.draw("second result\n", block(), 40).unwrap();
            process(&mut terminal, &mut screen);
            let rows = visible(&terminal);
            let [a, b, c] = ["a", "b", "c"].map(|letter| letter.repeat(38) + "…");
            assert_eq!(rows[20..], [a, b, c, "d".to_owned()], "{lines_before}");
            let cursor = usize::from(terminal.screen().cursor_position().0);
            assert_eq!(rows[cursor - 1], "second result", "{lines_before}");
            screen.draw("", vec![], 40).unwrap();
            process(&mut terminal, &mut screen);
            let rows: Vec<String> = [scrolled_off(&mut terminal), visible(&terminal)].concat();
            let left: Vec<&String> = rows.iter().filter(|row| !row.is_empty() && *row != "before").collect();
            assert_eq!(left, ["first result", "second result"], "{lines_before}: {rows:#?}");
        }
    }

    /// The program does not know yet that the terminal has few rows.
    #[test]
    fn a_low_terminal_keeps_no_line_of_the_block() {
        let mut screen = Screen::with_bottom_block(vec![], false);
        let mut terminal = vt100::Parser::new(3, 80, 1000);
        for result in ["one\n", "two\n", "three\n"] {
            screen.draw(result, block(), 80).unwrap();
            process(&mut terminal, &mut screen);
        }
        screen.draw("four\n", vec![], 80).unwrap();
        process(&mut terminal, &mut screen);
        let rows: Vec<String> = [scrolled_off(&mut terminal), visible(&terminal)].concat();
        let left: Vec<&String> = rows.iter().filter(|row| !row.is_empty()).collect();
        assert_eq!(left, ["one", "two", "three", "four"], "{rows:#?}");
    }

    #[test]
    fn lines_are_not_wrapped_at_a_width_that_is_out_of_date() {
        let mut screen = Screen::with_bottom_block(vec![], false);
        screen.draw(&("e".repeat(100) + "\n"), block(), 80).unwrap();
        let mut terminal = terminal(40, 0);
        process(&mut terminal, &mut screen);
        let rows = visible(&terminal);
        assert_eq!(rows[..3], ["e".repeat(40), "e".repeat(40), "e".repeat(20)]);
        let starts: Vec<&str> = rows[20..].iter().map(|row| &row[..1]).collect();
        assert_eq!(starts, ["a", "b", "c", "d"], "{rows:#?}");
    }

    #[test]
    fn the_cursor_ends_below_the_block() {
        for (placement, row) in [(Placement::Inline, 5), (Placement::Bottom, 23)] {
            let mut out = vec![];
            let mut screen = Screen::at(placement, &mut out, false);
            screen.draw("result\n", block(), 80).unwrap();
            drop(screen);
            let mut terminal = terminal(80, 0);
            terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
            assert_eq!(terminal.screen().cursor_position(), (row, 0));
            assert_eq!(visible(&terminal).last().unwrap(), "");
        }
    }
}
