//! Live report: final lines scroll above a table of all cases that is redrawn in place.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use terminal_size::{Height, Width};

use super::plain_log::LogFormatter;
use super::screen::Screen;
use super::style::{Line, colour_markdown};
use super::table::draw_table;
use crate::markdown::{needs_attention, run_summary};
use crate::output_options::{OutputOptions, Verbosity};
use crate::run_dir::RunDir;
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use crate::stream::{RunEvent, RunEventKind};

/// Minimum time between two drawings without a final line: a model sends thousands of events.
const REDRAW_INTERVAL: Duration = Duration::from_millis(60);

/// The live report.
#[derive(Debug)]
pub struct LiveTerminal<W> {
    screen: Screen<W>,
    size: fn() -> Option<(Width, Height)>,
    colour: bool,
    run_dir: Option<RunDir>,
    formatter: LogFormatter,
    /// Wall-clock time of the last drawing.
    drawn: Option<Instant>,
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
        let colour = options.colour;
        let formatter = LogFormatter::default();
        Self { screen: Screen::new(out, colour), size, colour, run_dir, formatter, drawn: None }
    }

    fn draw(&mut self, above: &str, now: Timestamp, run: &RunState) -> io::Result<()> {
        self.drawn = Some(Instant::now());
        let (Width(columns), Height(rows)) = (self.size)().unwrap_or((Width(80), Height(24)));
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        let table = if run.end.is_some() { vec![] } else { draw_table(run, now, columns, rows) };
        self.screen.draw(above, table, columns)
    }
}

impl<W: Write + Send> Report for LiveTerminal<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        let lines = self.formatter.lines(event);
        let is_final = is_final(&event.what);
        if !is_final && self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL) {
            return Ok(());
        }
        let text = |line: &Line| line.text(self.colour) + "\n";
        let above: String = if is_final { lines.iter().map(text).collect() } else { String::new() };
        Ok(self.draw(&above, event.at, run)?)
    }

    fn on_tick(&mut self, now: Timestamp, run: &RunState) -> Result<(), ReportError> {
        Ok(self.draw("", now, run)?)
    }

    fn finish(mut self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let summary =
            colour_markdown(&run_summary(run, self.run_dir.as_ref(), Verbosity::Normal), self.colour);
        Ok(self.screen.draw(&format!("\n{summary}"), vec![], usize::MAX)?)
    }
}

/// Returns whether an event gets a permanent line; the table shows the others.
fn is_final(what: &RunEventKind) -> bool {
    match what {
        RunEventKind::CaseStarted { .. }
        | RunEventKind::CaseStep { .. }
        | RunEventKind::CaseProgress { .. } => false,
        RunEventKind::CaseEnded { judgement, .. } => needs_attention(judgement.verdict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn wide() -> Option<(Width, Height)> {
        Some((Width(80), Height(24)))
    }

    fn narrow() -> Option<(Width, Height)> {
        Some((Width(40), Height(24)))
    }

    /// Contents of a terminal of 80 columns after `events` and, if `end` is set, after the end.
    fn shown(events: &[RunEvent], end: bool) -> (String, (u16, u16), bool) {
        let mut out = vec![];
        let mut report = Box::new(LiveTerminal::new(&mut out, wide, fixtures::live_output(true), None));
        let mut state = RunState::default();
        for event in events {
            state.apply(event);
            report.on_event(event, &state).unwrap();
            report.on_tick(event.at, &state).unwrap();
        }
        if end {
            report.finish(&state).unwrap();
        }
        let mut terminal = vt100::Parser::new(100, 80, 0);
        terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
        let screen = terminal.screen();
        let rows: Vec<String> = screen.rows(0, 80).map(|row| row.trim_end().to_owned()).collect();
        let contents = rows.join("\n").trim_end().to_owned();
        (contents, screen.cursor_position(), screen.hide_cursor())
    }

    #[test]
    fn table_stays_below_final_lines() {
        let events: Vec<_> = fixtures::full_run().into_iter().take_while(|event| !is_end(event)).collect();
        let (contents, (row, column), hidden) = shown(&events, false);
        insta::assert_snapshot!(contents);
        assert_eq!((usize::from(row), column, hidden), (contents.lines().count(), 0, false));
    }

    #[test]
    fn table_is_removed_at_the_end() {
        let (contents, (_, column), hidden) = shown(&fixtures::full_run(), true);
        assert!(!contents.contains("waiting"), "{contents}");
        assert!(contents.contains("| message/sidecars-are-named"), "{contents}");
        assert_eq!((column, hidden), (0, false));
    }

    #[test]
    fn narrower_terminal_is_erased_completely() {
        let mut out = vec![];
        let events = fixtures::full_run();
        let mut report = LiveTerminal::new(&mut out, wide, fixtures::live_output(false), None);
        let state = fixtures::deliver(&mut report, &events[..2]);
        report.size = narrow;
        report.on_tick(events[2].at, &state).unwrap();
        // The header and the six cases take two rows each on 40 columns, the totals one.
        let text = String::from_utf8(out).unwrap();
        let up: Vec<&str> = text.split('\r').skip(1).filter_map(|part| part.split('A').next()).collect();
        assert_eq!(up, ["\x1b[8", "\x1b[15"], "{text:?}");
    }

    fn is_end(event: &RunEvent) -> bool {
        matches!(event.what, RunEventKind::RunEnded { .. })
    }
}
