//! Live report: results scroll above a region with the running cases that is redrawn in place.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use terminal_size::{Height, Width};

use super::plain_log::{CONTINUATION_INDENT, LogFormatter};
use super::region::{Times, draw_region};
use super::screen::Screen;
use super::style::Line;
use super::summary::wrapped_summary;
use crate::backend_name::BackendName;
use crate::output_options::{OutputOptions, Verbosity};
use crate::run_dir::RunDir;
use crate::run_event::{RunEvent, RunEventKind};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};

/// Minimum time between two drawings without a permanent line: a model sends thousands of events.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum part of the rows of the terminal that the region takes: it stays on the screen if all
/// its lines wrap twice, as at a third of the width.
const ROWS_PER_LINE: usize = 3;

/// Time without a change of the width after which the whole region is drawn again. While a window
/// is dragged, a short line stands for it: each line that wraps moves a row to the scrollback.
const RESIZE_PAUSE: Duration = Duration::from_secs(2);

/// Maximum width of the short line.
const RESIZE_COLUMNS: usize = 40;

/// The live report.
#[derive(Debug)]
pub struct LiveTerminal<W: Write> {
    screen: Screen<W>,
    read_size: fn() -> Option<(Width, Height)>,
    options: OutputOptions,
    run_dir: Option<RunDir>,
    formatter: LogFormatter,
    /// Real time of the start of the run, also in a model.
    started: Instant,
    /// Real time of the start of its first case.
    first_case: Option<Instant>,
    /// Real time of the last drawing.
    drawn: Option<Instant>,
    /// Width of the terminal at the last drawing.
    columns: Option<usize>,
    /// Real time of the last change of the width.
    resized: Option<Instant>,
}

impl<W: Write> LiveTerminal<W> {
    /// Draws on `out`, a terminal whose `size` is read before each drawing. Nothing else may write
    /// to the terminal meanwhile.
    pub fn new(
        out: W,
        size: fn() -> Option<(Width, Height)>,
        options: OutputOptions,
        run_dir: Option<RunDir>,
    ) -> Self {
        Self {
            screen: Screen::with_bottom_block(out, options.color),
            read_size: size,
            options,
            run_dir,
            formatter: LogFormatter::default(),
            started: Instant::now(),
            first_case: None,
            drawn: None,
            columns: None,
            resized: None,
        }
    }

    /// Returns whether the width of the terminal has changed a moment ago.
    fn is_resizing(&mut self, columns: usize) -> bool {
        if self.columns.replace(columns).is_some_and(|before| before != columns) {
            self.resized = Some(Instant::now());
        }
        self.resized.is_some_and(|resized| resized.elapsed() < RESIZE_PAUSE)
    }

    /// Returns the columns and rows of the terminal.
    fn size(&self) -> (usize, usize) {
        let (Width(columns), Height(rows)) = (self.read_size)().unwrap_or((Width(80), Height(24)));
        (usize::from(columns), usize::from(rows))
    }

    fn draw(&mut self, above: &str, now: Timestamp, run: &RunState) -> io::Result<()> {
        self.drawn = Some(Instant::now());
        let (columns, rows) = self.size();
        let busy = self.first_case.map_or(Duration::ZERO, |first| first.elapsed());
        let times = Times { now, elapsed: self.started.elapsed(), busy };
        let region = match run.end {
            Some(_) => vec![],
            None if self.is_resizing(columns) => draw_region(run, times, columns.min(RESIZE_COLUMNS), 1),
            None => draw_region(run, times, columns, rows / ROWS_PER_LINE),
        };
        self.screen.draw(above, region, columns)
    }
}

impl<W: Write + Send> Report for LiveTerminal<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        if let (RunEventKind::CaseStarted { .. }, None) = (&event.kind, self.first_case) {
            self.first_case = Some(Instant::now());
        }
        let lines = self.formatter.lines(event, run);
        let is_permanent = is_permanent(&event.kind, run);
        if !is_permanent && self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL) {
            return Ok(());
        }
        let (columns, _) = self.size();
        let text = |line: Line| line.text(self.options.color).trim_end().to_owned() + "\n";
        let wrapped = |line: &Line| line.wrapped(columns, CONTINUATION_INDENT);
        let above: String =
            if is_permanent { lines.iter().flat_map(wrapped).map(text).collect() } else { String::new() };
        Ok(self.draw(&above, event.at, run)?)
    }

    fn on_tick(&mut self, now: Timestamp, run: &RunState) -> Result<(), ReportError> {
        Ok(self.draw("", now, run)?)
    }

    fn finish(mut self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let (columns, _) = self.size();
        let options = OutputOptions { verbosity: Verbosity::Normal, ..self.options };
        let summary = wrapped_summary(run, self.run_dir.as_ref(), options, columns);
        Ok(self.screen.draw(&format!("\n{summary}"), vec![], usize::MAX)?)
    }
}

/// Returns whether an event gets a permanent line: the start of the run, and all that needs
/// attention. The region shows the others.
fn is_permanent(kind: &RunEventKind, run: &RunState) -> bool {
    match kind {
        RunEventKind::CaseStarted { .. }
        | RunEventKind::CaseStep { .. }
        | RunEventKind::CaseProgress { .. }
        | RunEventKind::CaseRetried { .. }
        | RunEventKind::ClusterStarted { .. }
        | RunEventKind::ClusterReady { .. }
        | RunEventKind::RunEnded { .. } => false,
        // On an existing cluster, the steps name nodes that are not used.
        RunEventKind::ClusterStep { .. } => {
            run.run.as_ref().is_some_and(|run| run.backend == BackendName::Existing)
        }
        RunEventKind::ClusterDeleted { kept, error, .. } => kept.is_some() || error.is_some(),
        RunEventKind::CaseEnded { result, .. } => result.verdict.needs_attention(),
        RunEventKind::RunStarted { .. }
        | RunEventKind::ClusterWarning { .. }
        | RunEventKind::ClusterFailed { .. }
        | RunEventKind::CaseInterrupted { .. }
        | RunEventKind::Interrupted { .. }
        | RunEventKind::ReportFailed { .. }
        | RunEventKind::TimedOut => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::*;
    use crate::fixtures;
    use evictlab_judge::Verdict;

    const ROWS: u16 = 24;

    fn wide() -> Option<(Width, Height)> {
        Some((Width(80), Height(ROWS)))
    }

    fn narrow() -> Option<(Width, Height)> {
        Some((Width(40), Height(ROWS)))
    }

    /// A terminal after a report.
    struct Shown {
        /// All rows, those that scrolled off the top included.
        rows: Vec<String>,
        cursor: (u16, u16),
        is_cursor_hidden: bool,
    }

    /// Shows `events` on a terminal that scrolls, and after the end, if it is set, the summary.
    fn shown(size: fn() -> Option<(Width, Height)>, events: &[RunEvent], end: bool) -> Shown {
        let mut out = vec![];
        let mut report = Box::new(LiveTerminal::new(&mut out, size, fixtures::live_output(true), None));
        let mut state = RunState::default();
        for event in events {
            state.apply(event);
            report.on_event(event, &state).unwrap();
            report.on_tick(event.at, &state).unwrap();
        }
        if end {
            report.finish(&state).unwrap()
        } else {
            drop(report)
        }
        let (Width(columns), Height(rows)) = size().unwrap();
        let mut terminal = vt100::Parser::new(rows, columns, 1000);
        terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
        let screen = terminal.screen_mut();
        let (cursor, is_cursor_hidden) = (screen.cursor_position(), screen.hide_cursor());
        screen.set_scrollback(usize::MAX);
        let mut all = vec![];
        for offset in (0..=screen.scrollback()).rev() {
            screen.set_scrollback(offset);
            let visible: Vec<String> = screen.rows(0, columns).collect();
            let new = if offset == 0 { &visible[..] } else { &visible[..1] };
            all.extend(new.iter().map(|row| row.trim_end().to_owned()));
        }
        Shown { rows: all, cursor, is_cursor_hidden }
    }

    /// The events of a run with many cases, of which every tenth fails.
    fn long_run() -> Vec<RunEvent> {
        const KUBELET: &str = "v1.32.13";
        let names: Vec<String> = (1..=60).map(|number| format!("case-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut events = vec![fixtures::run_started(&[KUBELET], &names)];
        for (number, name) in (1..).zip(&names) {
            let id = fixtures::id("message", name, KUBELET, 1);
            events.push(RunEventKind::CaseStarted { id, node: "el-worker".to_owned() });
            let verdict = if number % 10 == 0 { Verdict::Failed } else { Verdict::Passed };
            events.push(fixtures::case_ended(name, KUBELET, 1, verdict, "why not"));
        }
        (0..).zip(events).map(|(second, kind)| fixtures::event(f64::from(second), kind)).collect()
    }

    #[test]
    fn region_stays_below_permanent_lines() {
        let events: Vec<_> = fixtures::full_run().into_iter().take_while(|event| !is_end(event)).collect();
        let Shown { rows, cursor: (row, column), is_cursor_hidden } = shown(wide, &events, false);
        let contents = rows.join("\n").trim_end().to_owned();
        // The real time is the speed of this machine.
        let contents = regex::Regex::new(" [0-9]+s(, about .*)?\n?$").unwrap().replace(&contents, " TIME");
        insta::assert_snapshot!(contents);
        assert_eq!((row, column, is_cursor_hidden), (ROWS - 1, 0, false));
    }

    #[test]
    fn a_short_line_stands_for_the_region_while_the_width_changes() {
        static COLUMNS: AtomicU16 = AtomicU16::new(80);
        let size = || Some((Width(COLUMNS.load(Ordering::Relaxed)), Height(ROWS)));
        let mut out = vec![];
        let mut report = LiveTerminal::new(&mut out, size, fixtures::live_output(false), None);
        let mut state = RunState::default();
        let mut ends = vec![];
        for (event, columns) in long_run()[..4].iter().zip([80, 80, 70, 60]) {
            COLUMNS.store(columns, Ordering::Relaxed);
            state.apply(event);
            report.on_tick(event.at, &state).unwrap();
            ends.push(report.screen.drawn_lines());
        }
        assert_eq!(ends, [1, 2, 1, 1]);
        drop(report);
        let text = String::from_utf8(out).unwrap();
        let last = text.rsplit("\x1b[?7l").next().unwrap();
        let line = regex::Regex::new("\x1b(\\[[0-9;?]*[a-zA-Z]|[78])").unwrap().replace_all(last, "");
        assert!(line.contains("──"), "{line:?}");
        assert!(line.trim().chars().count() < RESIZE_COLUMNS, "{line:?}");
    }

    #[test]
    fn only_results_remain_in_the_scrollback() {
        for size in [wide, narrow] {
            let Shown { rows, cursor: (_, column), is_cursor_hidden } = shown(size, &long_run(), true);
            assert!(rows.len() > 2 * usize::from(ROWS), "nothing scrolled");
            let of_region = ["━", "─", "observe", "await-node", "start  on", "more case"];
            let left: Vec<_> =
                rows.iter().filter(|row| of_region.iter().any(|part| row.contains(part))).collect();
            assert!(left.is_empty(), "{left:?}");
            let log = rows.iter().take_while(|row| !row.starts_with('|'));
            let failures = log.filter(|row| row.contains("failed  why")).count();
            assert_eq!((failures, column, is_cursor_hidden), (6, 0, false), "{rows:#?}");
        }
    }

    #[test]
    fn permanent_lines_are_broken_between_words() {
        const WHY: &str = "the event does not name the sidecar that used up the memory of the node";
        let started = RunEventKind::CaseStarted {
            id: fixtures::id("message", "requests-decide", "v1.32.13", 1),
            node: "el-worker".to_owned(),
        };
        let events = [
            fixtures::run_started(&["v1.32.13"], &["requests-decide"]),
            started,
            fixtures::case_ended("requests-decide", "v1.32.13", 1, Verdict::Failed, WHY),
        ];
        let events: Vec<_> = events.into_iter().map(|kind| fixtures::event(1.5, kind)).collect();
        let rows = shown(narrow, &events, true).rows;
        let log = rows.iter().take_while(|row| !row.starts_with('|'));
        let words: Vec<&str> = log.flat_map(|row| row.split_whitespace()).collect();
        assert!(words.join(" ").contains(WHY), "{rows:#?}");
    }

    #[test]
    fn warnings_of_a_cluster_remain_above_the_region() {
        let cluster = || "evictlab-7f3a".to_owned();
        let events = [
            fixtures::run_started(&["v1.32.13"], &["requests-decide"]),
            RunEventKind::ClusterStarted { cluster: cluster(), kubelets: vec![], reused: false },
            RunEventKind::ClusterWarning { cluster: cluster(), text: "why\nhelp: what to do".to_owned() },
            RunEventKind::ClusterStep { cluster: cluster(), text: "the next step".to_owned() },
        ];
        let events: Vec<_> = events.into_iter().map(|kind| fixtures::event(1.5, kind)).collect();
        let rows = shown(wide, &events, false).rows;
        let row = |text: &str| rows.iter().position(|row| row.contains(text)).unwrap();
        assert!(row("warning  why") < row("help: what to do") && row("help: what") < row("the next step"));
    }

    fn is_end(event: &RunEvent) -> bool {
        matches!(event.kind, RunEventKind::RunEnded { .. })
    }
}
