//! Lines at the bottom of a terminal that are drawn again in place.

use std::io::{self, Write};

use super::paint::Line;

/// Draws a block of lines over the one before. The cursor is left in the first column below the block, always
/// visible, so that whatever ends the process leaves a terminal in order.
#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    colour: bool,
    /// The widths of the lines that are drawn.
    drawn: Vec<usize>,
}

impl<W: Write> Screen<W> {
    pub fn new(out: W, colour: bool) -> Self {
        Self { out, colour, drawn: vec![] }
    }

    /// Writes `above` for good, and `block` below it in the place of the last one, on a terminal of `columns`. No line
    /// of the block is wider than the terminal; if that has become narrower since, what wrapped is erased as well.
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
        // One write, so that no terminal shows half a block.
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}
