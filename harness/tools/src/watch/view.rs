//! The view of a watch: on a terminal a table that is redrawn below a log, otherwise the table once
//! and then the log.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::{SignedDuration, Timestamp};
use terminal_size::{Height, Width};

use super::change::{Change, ChangeKind};
use super::node::NodeView;
use super::node_table::{ColumnWidths, NodeRows, node_rows};
use super::options::ViewOptions;
use super::state::WatchState;
use evictlab_report::{Line, Screen, Style};
use evictlab_rules::threshold::MissingDefaults;

/// The output of a watch.
#[derive(Debug)]
pub struct WatchView<W> {
    screen: Screen<W>,
    size: fn() -> Option<(Width, Height)>,
    options: ViewOptions,
    /// Time of the last drawing of the live table.
    drawn: Option<Timestamp>,
}

/// Maximum number of nodes that a warning names.
const MAX_NAMES: usize = 3;

/// Minimum time between two drawings without a new line in the log.
const REDRAW_INTERVAL: SignedDuration = SignedDuration::from_millis(100);

impl<W: Write> WatchView<W> {
    /// Writes to `out`; `size` returns the size of the terminal. Other writers to `out` would
    /// corrupt the live table.
    pub fn new(out: W, size: fn() -> Option<(Width, Height)>, options: ViewOptions) -> Self {
        Self { screen: Screen::new(out, options.terminal.colour), size, options, drawn: None }
    }

    /// Prints the state of nodes once.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn print_once(&mut self, views: Vec<NodeView>, now: Timestamp) -> io::Result<()> {
        let mut state = WatchState::default();
        for view in views {
            state.apply(view, now);
        }
        let text = self.table(&state, now);
        self.screen.draw(&text, Vec::new(), usize::MAX)
    }

    /// Shows the initial state.
    pub(super) fn start(&mut self, state: &WatchState, now: Timestamp) -> io::Result<()> {
        match self.options.terminal.live {
            true => self.draw("", state, now),
            false => {
                let text = self.table(state, now);
                self.screen.draw(&text, Vec::new(), usize::MAX)
            }
        }
    }

    /// Shows changes.
    pub(super) fn update(
        &mut self,
        state: &WatchState,
        changes: &[Change],
        now: Timestamp,
    ) -> io::Result<()> {
        let live = self.options.terminal.live;
        // The live table shows the first candidate.
        let logged = changes.iter().filter(|change| !live || change.kind != ChangeKind::TopCandidateChanged);
        let above: String = logged.map(|change| self.text(&log_line(change, state))).collect();
        match live {
            true => self.draw(&above, state, now),
            false if above.is_empty() => Ok(()),
            false => self.screen.draw(&above, Vec::new(), usize::MAX),
        }
    }

    fn draw(&mut self, above: &str, state: &WatchState, now: Timestamp) -> io::Result<()> {
        // The results of a large cluster arrive more often than anybody can read them.
        let is_recent = self.drawn.is_some_and(|drawn| now.duration_since(drawn) < REDRAW_INTERVAL);
        if above.is_empty() && is_recent {
            return Ok(());
        }
        self.drawn = Some(now);
        let (Width(columns), Height(rows)) = (self.size)().unwrap_or((Width(80), Height(24)));
        let block = frame(state, &self.options, usize::from(rows), now);
        self.screen.draw(above, block, usize::from(columns))
    }

    /// Renders all nodes.
    fn table(&self, state: &WatchState, now: Timestamp) -> String {
        let widths = ColumnWidths::of(state);
        let mut text = self.text(&title(state, &self.options, 0, now));
        text.extend(warnings(state).iter().map(|line| self.text(line)));
        for view in state.nodes.values() {
            let rows = NodeRows { view, evictions: &[], widths, pods: self.options.pods, now };
            let lines = node_rows(&rows, usize::MAX);
            text.push('\n');
            text.extend(lines.iter().map(|line| self.text(line)));
        }
        text.push('\n');
        text
    }

    fn text(&self, line: &Line) -> String {
        line.text(self.options.terminal.colour).trim_end().to_owned() + "\n"
    }
}

/// Returns the lines for a terminal with `rows` rows: fewer lines than rows.
pub(super) fn frame(state: &WatchState, options: &ViewOptions, rows: usize, now: Timestamp) -> Vec<Line> {
    // One line for the title, one for the cursor.
    let room = rows.saturating_sub(2);
    let mut warnings = warnings(state);
    warnings.truncate(room / 4);
    let room = room - warnings.len();
    let widths = ColumnWidths::of(state);
    let mut shown: Vec<&NodeView> = state.nodes.values().collect();
    let hidden = shown.len().saturating_sub(room);
    if hidden > 0 {
        // If not all fit, the nodes nearest to a threshold are shown.
        shown.sort_by_key(|view| view.urgency());
        shown.truncate(room);
        shown.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let mut lines = vec![title(state, options, hidden, now)];
    for (nth, view) in shown.iter().enumerate() {
        // The next nodes get the unused lines of the previous ones.
        let share = (room + 1 - lines.len()) / (shown.len() - nth);
        let evictions = state.evictions.get(&view.name).map_or(&[][..], Vec::as_slice);
        let rows = NodeRows { view, evictions, widths, pods: options.pods, now };
        lines.extend(node_rows(&rows, share));
    }
    lines.splice(1..1, warnings);
    lines
}

/// Returns a line for each set of default thresholds that nodes do not have.
fn warnings(state: &WatchState) -> Vec<Line> {
    let mut nodes: BTreeMap<&MissingDefaults, Vec<&str>> = BTreeMap::new();
    for view in state.nodes.values() {
        let missing = view.reading.as_ref().and_then(|reading| reading.missing_defaults.as_ref());
        if let Some(missing) = missing {
            nodes.entry(missing).or_default().push(&view.name);
        }
    }
    let warning = |(missing, nodes): (&MissingDefaults, Vec<&str>)| {
        let (named, others) = nodes.split_at(nodes.len().min(MAX_NAMES));
        let others = match others.len() {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let mut line = Line::default();
        line.push("warning", Style::Yellow);
        line.gap();
        line.push(&format!("{}{others}: {missing}", named.join(", ")), Style::Plain);
        line
    };
    nodes.into_iter().map(warning).collect()
}

fn title(state: &WatchState, options: &ViewOptions, hidden: usize, now: Timestamp) -> Line {
    let mut line = Line::default();
    line.push(&now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), Style::Dim);
    if let Some(reason) = &state.server_error {
        line.gap();
        line.push(&format!("API server does not answer: {reason}"), Style::Red);
    }
    line.gap();
    line.push(&options.title, Style::Bold);
    line.gap();
    match state.nodes.len() {
        0 => line.push("no nodes", Style::Yellow),
        1 => line.push("1 node", Style::Plain),
        count => line.push(&format!("{count} nodes"), Style::Plain),
    }
    if hidden > 0 {
        line.gap();
        line.push(&format!("{hidden} nodes farther from a threshold not shown"), Style::Dim);
    }
    line
}

/// Width of the longest [`ChangeKind::label`], `thresholds`.
const LABEL_WIDTH: usize = 10;

/// Formats a change with time, node, label and description.
fn log_line(change: &Change, state: &WatchState) -> Line {
    let widest = state.nodes.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut line = Line::default();
    line.push(&change.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), Style::Dim);
    line.gap();
    line.push_padded(&change.node, Style::Plain, widest);
    line.gap();
    line.push_padded(change.kind.label(), change.kind.style(), LABEL_WIDTH);
    line.gap();
    line.push(&change.text, Style::Plain);
    line
}
