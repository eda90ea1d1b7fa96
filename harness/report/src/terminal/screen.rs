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

/// Draws a block of lines over the previous one. The cursor stays visible, in the first column of
/// the block's first line: terminals that wrap lines again when they become narrower move it with
/// that line, so that the whole block is below it, however many rows it takes now.
///
/// Nothing depends on the exact width of the terminal, which may be out of date: tmux changes its
/// screen up to 250 ms before it tells the program. tmux also counts blank rows: lines that wrap
/// move as many rows from the top of the screen to the scrollback, even if the screen is empty
/// below them. `room` is the number of lines that stay on the screen then.
///
/// Not indicatif: it moves up from the end of its block by the number of rows at the width that it
/// knows, so that remains of each drawing stay above the next. Not ratatui: its inline viewport
/// asks the terminal for the position of the cursor, on standard input.
#[derive(Debug)]
pub struct Screen<W: Write> {
    out: W,
    color: bool,
    /// Widths of the drawn lines.
    drawn: Vec<usize>,
    /// Number of rows below the block that earlier blocks have used.
    blank: usize,
    /// The drawn lines, and the width of the terminal.
    last: (String, usize),
}

impl<W: Write> Screen<W> {
    /// Wraps a terminal. Without `color`, no escape sequences for colors are written.
    pub fn new(out: W, color: bool) -> Self {
        Self { out, color, drawn: vec![], blank: 0, last: (String::new(), 0) }
    }

    /// Number of rows that the block may have used, from the cursor down.
    fn used(&self, columns: usize) -> usize {
        let is_wrapped = columns < self.last.1;
        let rows = |width: &usize| if is_wrapped { width.div_ceil(columns.max(1)).max(1) } else { 1 };
        self.drawn.iter().map(rows).sum::<usize>() + self.blank
    }

    /// Maximum number of lines of the next block that stay on a terminal of this size, of which the
    /// cursor was in the last row at first, if it becomes narrower and wraps each of them once.
    pub(super) fn room(&self, columns: usize, rows: usize) -> usize {
        let rows = rows.saturating_sub(1);
        rows.saturating_sub(self.used(columns)).min(rows / 2)
    }

    /// Writes `above` permanently and replaces the previous block by `block` below it. Lines are
    /// truncated to `columns`. A block that is drawn already is not written again.
    ///
    /// # Errors
    /// The terminal could not be written.
    pub fn draw(&mut self, above: &str, block: Vec<Line>, columns: usize) -> io::Result<()> {
        let block: Vec<Line> = block.into_iter().map(|line| line.cut(columns.saturating_sub(1))).collect();
        let lines: String = block.iter().map(|line| line.text(self.color) + "\n").collect();
        if above.is_empty() && self.last.0 == lines && self.last.1 == columns {
            return Ok(());
        }
        let mut text = String::new();
        if !self.drawn.is_empty() {
            text.push_str(ERASE_BELOW);
        }
        text.push_str(above);
        if !block.is_empty() {
            let count = block.len();
            text.push_str(&format!("{WRAP_OFF}{lines}{WRAP_ON}\x1b[{count}A"));
        }
        self.blank = self.used(columns).saturating_sub(above.lines().count() + block.len());
        self.drawn = block.iter().map(Line::width).collect();
        self.last = (lines, columns);
        // One write, so that no terminal shows a partial block.
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Screen<W> {
    /// Leaves the cursor below the block, for what is written next.
    fn drop(&mut self) {
        let _ignored =
            self.out.write_all("\n".repeat(self.drawn.len()).as_bytes()).and_then(|()| self.out.flush());
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

    fn rows(terminal: &vt100::Parser, columns: u16) -> Vec<String> {
        terminal.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
    }

    /// The terminal with another width: its lines are wrapped again, and the cursor stays in its
    /// line, as in tmux.
    fn rewrapped(terminal: &vt100::Parser, from: u16, columns: u16) -> vt100::Parser {
        let mut narrow = vt100::Parser::new(ROWS, columns, 0);
        let lines = rows(terminal, from);
        let cursor = usize::from(terminal.screen().cursor_position().0);
        narrow.process(lines[..cursor].join("\r\n").as_bytes());
        narrow.process(b"\r\n\x1b7");
        narrow.process(lines[cursor..].join("\r\n").trim_end().as_bytes());
        narrow.process(b"\x1b8");
        narrow
    }

    #[test]
    fn a_narrower_terminal_is_redrawn_completely() {
        let mut screen = Screen::new(vec![], false);
        let mut terminal = vt100::Parser::new(ROWS, 80, 0);
        screen.draw("first result\n", block(), 80).unwrap();
        process(&mut terminal, &mut screen);
        let mut terminal = rewrapped(&terminal, 80, 40);
        assert_eq!(rows(&terminal, 40)[1..3], ["a".repeat(40), "a".repeat(39)]);
        screen.draw("second result\n", block(), 40).unwrap();
        process(&mut terminal, &mut screen);
        let [a, b, c] = ["a", "b", "c"].map(|letter| letter.repeat(38) + "…");
        let expected = ["first result", "second result", &a, &b, &c, "d"];
        assert_eq!(rows(&terminal, 40).join("\n").trim_end(), expected.join("\n"));
        assert_eq!(terminal.screen().cursor_position(), (2, 0));
        // Of seven rows, four lines and a result take five.
        assert_eq!((screen.blank, screen.room(40, 24)), (2, 11));
        screen.draw("", vec![], 40).unwrap();
        process(&mut terminal, &mut screen);
        assert_eq!(terminal.screen().contents(), "first result\nsecond result");
    }

    #[test]
    fn lines_are_not_wrapped_at_a_width_that_is_out_of_date() {
        let mut screen = Screen::new(vec![], false);
        screen.draw(&("e".repeat(100) + "\n"), block(), 80).unwrap();
        let text = String::from_utf8(screen.out.clone()).unwrap();
        let (permanent, rest) = text.split_once(WRAP_OFF).unwrap();
        assert_eq!(permanent, "e".repeat(100) + "\n");
        let (lines, rest) = rest.split_once(WRAP_ON).unwrap();
        assert_eq!((lines.lines().count(), rest), (4, "\x1b[4A"));
    }

    #[test]
    fn room_is_what_a_narrower_terminal_does_not_push_into_the_scrollback() {
        let mut screen = Screen::new(vec![], false);
        assert_eq!((screen.room(80, 24), screen.room(80, 3), screen.room(80, 0)), (11, 1, 0));
        let ten_lines = || vec![block().remove(0); 10];
        screen.draw("", ten_lines(), 80).unwrap();
        assert_eq!((screen.room(80, 24), screen.room(60, 24)), (11, 3));
        screen.draw("", block()[..3].to_vec(), 60).unwrap();
        assert_eq!((screen.blank, screen.room(60, 24), screen.room(45, 24)), (17, 3, 1));
        // Results move the block down.
        screen.draw(&"result\n".repeat(12), block(), 60).unwrap();
        assert_eq!((screen.blank, screen.room(60, 24)), (4, 11));
        screen.draw(&"result\n".repeat(12), block(), 60).unwrap();
        assert_eq!(screen.blank, 0);
    }

    #[test]
    fn the_cursor_ends_below_the_block() {
        let mut out = vec![];
        let mut screen = Screen::new(&mut out, false);
        screen.draw("result\n", block(), 80).unwrap();
        drop(screen);
        let mut terminal = vt100::Parser::new(ROWS, 80, 0);
        terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
        assert_eq!(terminal.screen().cursor_position(), (5, 0));
    }
}
