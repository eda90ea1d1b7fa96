//! The view of a watch: on a terminal a table that is redrawn below a log, otherwise the table once
//! and then the log.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use terminal_size::{Height, Width};

use super::change::{ChangeKind, WatchChange};
use super::focus::{Focus, first_visible};
use super::keyboard::Key;
use super::node::NodeView;
use super::node_page::{NodePage, node_page};
use super::node_table::{ColumnWidths, NodeRows, node_header, node_rows};
use super::options::ViewOptions;
use super::state::{ReportedEviction, WatchState};
use evictlab_report::{Line, Screen, Style};
use evictlab_rules::threshold::MissingDefaults;

/// The output of a watch.
#[derive(Debug)]
pub struct WatchView<W: Write> {
    screen: Screen<W>,
    size: fn() -> Option<(Width, Height)>,
    options: ViewOptions,
    /// Part of the cluster that the live table shows.
    focus: Focus,
    /// Real time of the last drawing of the live table.
    drawn: Option<Instant>,
}

/// Maximum number of nodes that a warning names.
const MAX_NAMES: usize = 3;

/// Minimum time between two drawings without a new line in the log.
pub(super) const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

impl<W: Write> WatchView<W> {
    /// Writes to `out`; `size` returns the size of the terminal. Other writers to `out` would
    /// corrupt the live table.
    pub fn new(out: W, size: fn() -> Option<(Width, Height)>, options: ViewOptions) -> Self {
        let focus = Focus::default();
        Self { screen: Screen::new(out, options.terminal.color), size, options, focus, drawn: None }
    }

    /// Shows a line with the keys, and the selection that they make.
    pub(super) fn enable_keys(&mut self) {
        self.focus.has_keys = self.options.terminal.live;
    }

    /// Applies a key.
    pub(super) fn press(&mut self, key: Key, state: &WatchState, now: Timestamp) -> io::Result<()> {
        self.focus.apply(key, state);
        // A key is answered at once.
        self.drawn = None;
        self.draw("", state, now)
    }

    /// Removes the line with the keys: the table remains as it is.
    pub(super) fn finish(&mut self, state: &WatchState, now: Timestamp) -> io::Result<()> {
        if !self.focus.has_keys {
            return Ok(());
        }
        self.focus.has_keys = false;
        self.drawn = None;
        self.draw("", state, now)
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
        if self.options.terminal.live {
            self.draw("", state, now)
        } else {
            let text = self.table(state, now);
            self.screen.draw(&text, Vec::new(), usize::MAX)
        }
    }

    /// Shows changes.
    pub(super) fn update(
        &mut self,
        state: &WatchState,
        changes: &[WatchChange],
        now: Timestamp,
    ) -> io::Result<()> {
        let live = self.options.terminal.live;
        // The live table shows the first candidate.
        let logged = changes.iter().filter(|change| !live || change.kind != ChangeKind::TopCandidateChanged);
        let above: String = logged.map(|change| self.text(&log_line(change, state))).collect();
        if live {
            self.draw(&above, state, now)
        } else if above.is_empty() {
            Ok(())
        } else {
            self.screen.draw(&above, Vec::new(), usize::MAX)
        }
    }

    fn draw(&mut self, above: &str, state: &WatchState, now: Timestamp) -> io::Result<()> {
        // Results of a large cluster arrive faster than a reader can follow.
        let is_recent = self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL);
        if above.is_empty() && is_recent {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        let (Width(columns), Height(rows)) = (self.size)().unwrap_or((Width(80), Height(24)));
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        // The screen leaves the last column empty.
        let viewport = Viewport { columns: columns.saturating_sub(1), rows };
        let block = frame(state, &self.options, &self.focus, viewport, now);
        self.screen.draw(above, block, columns)
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
        line.text(self.options.terminal.color).trim_end().to_owned() + "\n"
    }
}

/// Size of a terminal.
#[derive(Clone, Copy)]
pub(super) struct Viewport {
    /// Maximum width of a line.
    pub columns: usize,
    pub rows: usize,
}

/// Returns the lines for a terminal: fewer lines than rows. Warnings and the selected node are
/// wrapped; other lines may be longer than the terminal is wide.
pub(super) fn frame(
    state: &WatchState,
    options: &ViewOptions,
    focus: &Focus,
    Viewport { columns, rows }: Viewport,
    now: Timestamp,
) -> Vec<Line> {
    // One line for the title, one for the cursor.
    let room = rows.saturating_sub(2);
    let help = (focus.has_keys && room > MIN_ROOM_FOR_HELP).then(|| keys_help(focus, columns));
    let room = room - usize::from(help.is_some());
    let selected = focus.node.as_ref().and_then(|node| state.nodes.get(node));
    let (mut lines, hidden) = match selected {
        Some(view) if focus.is_open => {
            let evictions = evictions(state, view);
            (node_page(&NodePage { view, evictions, focus, now }, columns, room), 0)
        }
        Some(view) => (selected_list(state, view, options, room, now), 0),
        None => nearest_list(state, options, Viewport { columns, rows: room }, now),
    };
    lines.insert(0, title(state, options, hidden, now));
    lines.extend(help);
    lines
}

/// Minimum number of lines of nodes and pods above the line with the keys.
const MIN_ROOM_FOR_HELP: usize = 3;

/// Returns the keys that fit into a width, and the one that quits.
fn keys_help(focus: &Focus, columns: usize) -> Line {
    let keys: &[&str] = match (focus.is_open, &focus.node) {
        (true, _) => &["↑ ↓ pod", "Esc all nodes", "s S signal"],
        (false, Some(_)) => &["↑ ↓ node", "Enter its pods", "Esc nearest to a threshold", "s S signal"],
        (false, None) => &["↑ ↓ node", "Enter its pods", "s S signal"],
    };
    let text = |count: usize| [&keys[..count], &["q quit"]].concat().join("   ");
    let text = (0..=keys.len()).rev().map(text).find(|text| text.chars().count() <= columns);
    let mut line = Line::default();
    line.push(text.as_deref().unwrap_or("q quit"), Style::Dim);
    line
}

fn evictions<'a>(state: &'a WatchState, view: &NodeView) -> &'a [ReportedEviction] {
    state.evictions.get(&view.name).map_or(&[][..], Vec::as_slice)
}

/// Returns the nodes around the selected one, which is marked and has its first pods.
fn selected_list(
    state: &WatchState,
    selected: &NodeView,
    options: &ViewOptions,
    room: usize,
    now: Timestamp,
) -> Vec<Line> {
    let widths = ColumnWidths::of(state);
    let pods =
        NodeRows { view: selected, evictions: evictions(state, selected), widths, pods: options.pods, now };
    let opened = node_rows(&pods, (room / 2).max(1));
    let place = state.nodes.keys().position(|name| *name == selected.name);
    let headers = room + 1 - opened.len().min(room);
    let first = first_visible(state.nodes.len(), place, headers);
    let mut lines = Vec::new();
    for view in state.nodes.values().skip(first).take(headers) {
        if view.name == selected.name {
            lines.extend(opened.iter().enumerate().map(|(nth, line)| line.clone().marked(nth == 0)))
        } else {
            lines.push(node_header(view, widths, now).marked(false))
        }
    }
    lines.truncate(room);
    lines
}

/// Returns all nodes, or those nearest to a threshold if not all fit, and the number of the others.
fn nearest_list(
    state: &WatchState,
    options: &ViewOptions,
    Viewport { columns, rows: room }: Viewport,
    now: Timestamp,
) -> (Vec<Line>, usize) {
    let wrapped = |line: &Line| line.wrapped(columns, WARNING_INDENT);
    let mut lines: Vec<Line> = warnings(state).iter().flat_map(wrapped).collect();
    if lines.len() > room / 4 {
        lines.truncate(room / 4);
        if let Some(last) = lines.pop() {
            let mut last = last.cut(columns.saturating_sub(1));
            last.push("…", Style::Dim);
            lines.push(last);
        }
    }
    let widths = ColumnWidths::of(state);
    let mut shown: Vec<&NodeView> = state.nodes.values().collect();
    let nodes = room - lines.len();
    let hidden = shown.len().saturating_sub(nodes);
    if hidden > 0 {
        shown.sort_by_key(|view| view.urgency());
        shown.truncate(nodes);
        shown.sort_by(|one, other| one.name.cmp(&other.name));
    }
    for (nth, view) in shown.iter().enumerate() {
        // The next nodes get the unused lines of the previous ones.
        let share = (room - lines.len()) / (shown.len() - nth);
        let rows = NodeRows { view, evictions: evictions(state, view), widths, pods: options.pods, now };
        lines.extend(node_rows(&rows, share));
    }
    (lines, hidden)
}

/// Indentation of the continued lines of a warning.
const WARNING_INDENT: usize = "warning  ".len();

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
fn log_line(change: &WatchChange, state: &WatchState) -> Line {
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
