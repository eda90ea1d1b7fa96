//! Lines at the bottom of a terminal that are redrawn in place.

use std::io::{self, Write};

use super::style::Line;

/// Draws a block of lines over the previous one. The cursor stays visible in the first column below
/// the block, so that the terminal is usable however the process ends.
///
/// Not indicatif: it erases the number of lines that it drew at the old width, and after a terminal
/// became narrower, as by a split in tmux, remains of each drawing stay above the next. Not
/// ratatui: its inline viewport asks the terminal for the position of the cursor, on standard
/// input.
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    colour: bool,
    /// Widths of the drawn lines.
    drawn: Vec<usize>,
    /// The drawn lines, and the width of the terminal.
    last: (String, usize),
}

impl<W: Write> Screen<W> {
    /// Wraps a terminal. Without `colour`, no escape sequences for colours are written.
    pub fn new(out: W, colour: bool) -> Self {
        Self { out, colour, drawn: vec![], last: (String::new(), 0) }
    }

    /// Writes `above` permanently and replaces the previous block by `block` below it. Lines are
    /// truncated to `columns`. A block that is drawn already is not written again. If the terminal
    /// became narrower, wrapped lines are erased as well.
    ///
    /// # Errors
    /// The terminal could not be written.
    pub fn draw(&mut self, above: &str, block: Vec<Line>, columns: usize) -> io::Result<()> {
        let block: Vec<Line> = block.into_iter().map(|line| line.cut(columns.saturating_sub(1))).collect();
        let block_text: String = block.iter().map(|line| line.text(self.colour) + "\n").collect();
        if above.is_empty() && self.last.0 == block_text && self.last.1 == columns {
            return Ok(());
        }
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        let mut text = String::new();
        if rows > 0 {
            // Not `ESC [ J`: at the top of the screen, tmux moves what it erases to the scrollback.
            text.push_str(&format!("\r\x1b[{rows}A{}\x1b[{rows}A", "\x1b[2K\x1b[B".repeat(rows)));
        }
        text.push_str(above);
        text.push_str(&block_text);
        self.drawn = block.iter().map(Line::width).collect();
        self.last = (block_text, columns);
        // One write, so that no terminal shows a partial block.
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}
