//! The live report: what is final scrolls by above, a table of all cases is drawn again below.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use terminal_size::{Height, Width};

use super::Manners;
use super::frame::frame;
use super::paint::{Line, markdown};
use super::plain::Lines;
use super::screen::Screen;
use crate::report::account::{self, needs_a_person};
use crate::report::ledger::Ledger;
use crate::report::{Report, ReportError, RunDir, RunEvent, What};

/// The least time between two drawings of what only moved: a model's events come by the thousand.
const REST: Duration = Duration::from_millis(60);

/// The live report.
#[derive(Debug)]
pub struct Live<W> {
    screen: Screen<W>,
    size: fn() -> Option<(Width, Height)>,
    colour: bool,
    run_dir: Option<RunDir>,
    lines: Lines,
    ledger: Ledger,
    /// When the table was drawn last, by the wall's time.
    drawn: Option<Instant>,
}

impl<W: Write> Live<W> {
    /// Draws on `out`, a terminal whose size is asked anew for every drawing. Nothing else may write there
    /// while it lives.
    pub fn new(
        out: W,
        size: fn() -> Option<(Width, Height)>,
        manners: Manners,
        run_dir: Option<RunDir>,
    ) -> Self {
        let colour = manners.colour;
        let screen = Screen::new(out, colour);
        Self {
            screen,
            size,
            colour,
            run_dir,
            lines: Lines::default(),
            ledger: Ledger::default(),
            drawn: None,
        }
    }

    fn draw(&mut self, above: &str, now: Timestamp) -> io::Result<()> {
        self.drawn = Some(Instant::now());
        let (Width(columns), Height(rows)) = (self.size)().unwrap_or((Width(80), Height(24)));
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        let block = if self.ledger.over.is_some() { vec![] } else { frame(&self.ledger, now, columns, rows) };
        self.screen.draw(above, block, columns)
    }
}

impl<W: Write + Send> Report for Live<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        let lines = self.lines.of(event);
        let is_final = is_final(&event.what);
        if !is_final && self.drawn.is_some_and(|drawn| drawn.elapsed() < REST) {
            return Ok(());
        }
        let text = |line: &Line| line.text(self.colour) + "\n";
        let above: String = if is_final { lines.iter().map(text).collect() } else { String::new() };
        Ok(self.draw(&above, event.at)?)
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), ReportError> {
        Ok(self.draw("", now)?)
    }

    fn finish(mut self: Box<Self>) -> Result<(), ReportError> {
        let account = markdown(&account::of_run(&self.ledger, self.run_dir.as_ref()), self.colour);
        Ok(self.screen.draw(&format!("\n{account}"), vec![], usize::MAX)?)
    }
}

/// Whether an event has a line for good; the table shows the others.
fn is_final(what: &What) -> bool {
    match what {
        What::CaseStarted { .. } | What::CaseStep { .. } | What::CaseProgress { .. } => false,
        What::CaseEnded { judgement, .. } => needs_a_person(judgement.verdict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::story;

    fn wide() -> Option<(Width, Height)> {
        Some((Width(80), Height(24)))
    }

    fn narrow() -> Option<(Width, Height)> {
        Some((Width(40), Height(24)))
    }

    /// What a terminal of 80 columns and 60 lines shows after `events` and, if asked for, the end.
    fn shown(events: &[RunEvent], end: bool) -> (String, (u16, u16), bool) {
        let mut out = vec![];
        let mut report = Box::new(Live::new(&mut out, wide, Manners { live: true, colour: true }, None));
        for event in events {
            report.take(event).unwrap();
            report.tick(event.at).unwrap();
        }
        if end {
            report.finish().unwrap();
        }
        let mut terminal = vt100::Parser::new(100, 80, 0);
        terminal.process(String::from_utf8(out).unwrap().replace('\n', "\r\n").as_bytes());
        let screen = terminal.screen();
        let rows: Vec<String> = screen.rows(0, 80).map(|row| row.trim_end().to_owned()).collect();
        let contents = rows.join("\n").trim_end().to_owned();
        (contents, screen.cursor_position(), screen.hide_cursor())
    }

    #[test]
    fn the_table_stays_below_what_is_final() {
        let events: Vec<_> = story::whole().into_iter().take_while(|event| !over(event)).collect();
        let (contents, (row, column), hidden) = shown(&events, false);
        insta::assert_snapshot!(contents);
        assert_eq!((usize::from(row), column, hidden), (contents.lines().count(), 0, false));
    }

    #[test]
    fn no_table_is_left_at_the_end() {
        let (contents, (_, column), hidden) = shown(&story::whole(), true);
        assert!(!contents.contains("waiting"), "{contents}");
        assert!(contents.contains("| message/sidecars-are-named"), "{contents}");
        assert_eq!((column, hidden), (0, false));
    }

    #[test]
    fn a_terminal_that_shrank_is_erased_whole() {
        let mut out = vec![];
        let events = story::whole();
        let mut report = Live::new(&mut out, wide, Manners { live: true, colour: false }, None);
        events.iter().take(2).for_each(|event| report.take(event).unwrap());
        report.size = narrow;
        report.tick(events[2].at).unwrap();
        // The header and the six cases take two rows each on 40 columns, the totals one.
        let text = String::from_utf8(out).unwrap();
        let up: Vec<&str> = text.split('\r').skip(1).filter_map(|part| part.split('A').next()).collect();
        assert_eq!(up, ["\x1b[8", "\x1b[15"], "{text:?}");
    }

    fn over(event: &RunEvent) -> bool {
        matches!(event.what, What::RunEnded { .. })
    }
}
