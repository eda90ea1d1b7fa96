//! Lines at the bottom of a terminal that are redrawn in place.

use std::io::{self, Write};

use super::style::Line;

/// Draws a block of lines over the previous one. The cursor stays visible in the first column below
/// the block, so that the terminal is usable however the process ends.
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    colour: bool,
    /// Widths of the drawn lines.
    drawn: Vec<usize>,
}

impl<W: Write> Screen<W> {
    /// Wraps a terminal. Without `colour`, no escape sequences for colours are written.
    pub fn new(out: W, colour: bool) -> Self {
        Self { out, colour, drawn: vec![] }
    }

    /// Writes `above` permanently and replaces the previous block by `block` below it. Lines are
    /// truncated to `columns`. If the terminal became narrower, wrapped lines are erased as well.
    ///
    /// # Errors
    /// The terminal could not be written.
    pub fn draw(&mut self, above: &str, block: Vec<Line>, columns: usize) -> io::Result<()> {
        let block: Vec<Line> = block.into_iter().map(|line| line.cut(columns.saturating_sub(1))).collect();
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        let mut text = String::new();
        if rows > 0 {
            text.push_str(&format!("\r\x1b[{rows}A\x1b[J"));
        }
        text.push_str(above);
        for line in &block {
            text.push_str(&line.text(self.colour));
            text.push('\n');
        }
        self.drawn = block.iter().map(Line::width).collect();
        // One write, so that no terminal shows a partial block.
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}
