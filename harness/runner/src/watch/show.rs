//! What a person sees: on a terminal a table that is drawn again below a log, elsewhere the table once and then the log.

use std::io::{self, Write};

use jiff::Timestamp;
use terminal_size::{Height, Width};

use super::change::{Change, What};
use super::ledger::Ledger;
use super::lines::line;
use super::node::NodeView;
use super::table::{Widths, node};
use crate::report::{Ink, Line, Manners, Screen};

/// How it is shown.
#[derive(Clone, Debug)]
pub struct Style {
    /// Whether to redraw, and whether to colour.
    pub manners: Manners,
    /// How many pods of each node are listed.
    pub pods: usize,
    /// What is watched, in a few words, for the first line.
    pub title: String,
}

/// Where it is shown.
#[derive(Debug)]
pub struct Show<W> {
    screen: Screen<W>,
    size: fn() -> Option<(Width, Height)>,
    style: Style,
}

impl<W: Write> Show<W> {
    /// Writes to `out`, a terminal of this size if lines are drawn again. Nothing else may write there while it lives.
    pub fn new(out: W, size: fn() -> Option<(Width, Height)>, style: Style) -> Self {
        Self { screen: Screen::new(out, style.manners.colour), size, style }
    }

    /// Shows nodes that were looked at once.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn once(&mut self, views: Vec<NodeView>, now: Timestamp) -> io::Result<()> {
        let mut ledger = Ledger::default();
        for view in views {
            ledger.take(view, now);
        }
        let text = self.whole(&ledger, now);
        self.screen.draw(&text, Vec::new(), usize::MAX)
    }

    /// Shows what there is at the beginning.
    pub(super) fn begin(&mut self, ledger: &Ledger, now: Timestamp) -> io::Result<()> {
        match self.style.manners.live {
            true => self.draw("", ledger, now),
            false => {
                let text = self.whole(ledger, now);
                self.screen.draw(&text, Vec::new(), usize::MAX)
            }
        }
    }

    /// Shows what has changed.
    pub(super) fn tell(&mut self, ledger: &Ledger, changes: &[Change], now: Timestamp) -> io::Result<()> {
        let live = self.style.manners.live;
        // Who is first stands in the table.
        let for_good = changes.iter().filter(|change| !live || change.what != What::Head);
        let above: String = for_good.map(|change| self.text(&line(change, ledger))).collect();
        match live {
            true => self.draw(&above, ledger, now),
            false if above.is_empty() => Ok(()),
            false => self.screen.draw(&above, Vec::new(), usize::MAX),
        }
    }

    fn draw(&mut self, above: &str, ledger: &Ledger, now: Timestamp) -> io::Result<()> {
        let (Width(columns), Height(rows)) = (self.size)().unwrap_or((Width(80), Height(24)));
        let block = frame(ledger, &self.style, usize::from(rows), now);
        self.screen.draw(above, block, usize::from(columns))
    }

    /// Every node, one below the other.
    fn whole(&self, ledger: &Ledger, now: Timestamp) -> String {
        let widths = Widths::of(ledger);
        let mut text = self.text(&title(ledger, &self.style, 0, now));
        for view in ledger.nodes.values() {
            let lines = node(view, &[], widths, self.style.pods, usize::MAX, now);
            text.push('\n');
            text.extend(lines.iter().map(|line| self.text(line)));
        }
        text.push('\n');
        text
    }

    fn text(&self, line: &Line) -> String {
        line.text(self.style.manners.colour).trim_end().to_owned() + "\n"
    }
}

/// What a terminal of so many rows shows: less lines than that.
pub(super) fn frame(ledger: &Ledger, style: &Style, rows: usize, now: Timestamp) -> Vec<Line> {
    // The title, and the line that the cursor is on.
    let room = rows.saturating_sub(2);
    let widths = Widths::of(ledger);
    let mut shown: Vec<&NodeView> = ledger.nodes.values().collect();
    let hidden = shown.len().saturating_sub(room);
    if hidden > 0 {
        // Where not all can be shown, those that are nearest to a threshold are.
        shown.sort_by_key(|view| view.urgency());
        shown.truncate(room);
        shown.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let mut lines = vec![title(ledger, style, hidden, now)];
    for (nth, view) in shown.iter().enumerate() {
        // What one does not need is the next ones'.
        let share = (room + 1 - lines.len()) / (shown.len() - nth);
        let told = ledger.evictions.get(&view.name).map_or(&[][..], Vec::as_slice);
        lines.extend(node(view, told, widths, style.pods, share, now));
    }
    lines
}

fn title(ledger: &Ledger, style: &Style, hidden: usize, now: Timestamp) -> Line {
    let mut line = Line::default();
    line.push(&now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), Ink::Dim);
    if let Some(why) = &ledger.silent {
        line.gap();
        line.push(&format!("the API server does not answer: {why}"), Ink::Red);
    }
    line.gap();
    line.push(&style.title, Ink::Bold);
    line.gap();
    match ledger.nodes.len() {
        0 => line.push("no nodes", Ink::Yellow),
        1 => line.push("1 node", Ink::Plain),
        count => line.push(&format!("{count} nodes"), Ink::Plain),
    }
    if hidden > 0 {
        line.gap();
        line.push(&format!("{hidden} of them farther from a threshold are not shown"), Ink::Dim);
    }
    line
}
