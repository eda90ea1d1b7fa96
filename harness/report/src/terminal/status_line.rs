//! Progress of a command that is not a run: one line that is redrawn in place, or a line for each
//! step.

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use terminal_size::{Height, Width};

use super::screen::Screen;
use super::style::{Line, Style};
use crate::output_options::Verbosity;
use crate::terminal_caps::TerminalCaps;
use crate::text::without_workflow_commands;

/// Number of lines about a count, if they cannot be redrawn.
const COUNT_LINES: usize = 10;

/// Minimum time between two drawings of a count.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Reports steps and counts, for standard error. Threads may share it. Errors are ignored: a closed
/// terminal must not end the command.
pub struct StatusLine<W: Write> {
    output: Mutex<Output<W>>,
    is_live: bool,
    verbosity: Verbosity,
    started: Instant,
}

struct Output<W: Write> {
    screen: Screen<W>,
    size: fn() -> Option<(Width, Height)>,
    drawn: Option<Instant>,
}

impl<W: Write> fmt::Debug for StatusLine<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusLine").field("is_live", &self.is_live).finish_non_exhaustive()
    }
}

impl<W: Write> StatusLine<W> {
    /// Writes to `out`, a stream with these capabilities, whose `size` is read before each drawing.
    /// Quiet, it writes nothing.
    pub fn new(
        out: W,
        caps: TerminalCaps,
        size: fn() -> Option<(Width, Height)>,
        verbosity: Verbosity,
    ) -> Self {
        let output = Output { screen: Screen::new(out, caps.color), size, drawn: None };
        Self { output: Mutex::new(output), is_live: caps.live, verbosity, started: Instant::now() }
    }

    /// Shows a step.
    pub fn step(&self, text: &str) {
        self.write(text, None);
    }

    /// Shows a number of finished items, such as `mutants`.
    pub fn count(&self, finished: usize, total: usize, items: &str) {
        let every = total.div_ceil(COUNT_LINES).max(1);
        if self.is_live || finished.is_multiple_of(every) || finished == total {
            self.write(&format!("{finished} of {total} {items}"), Some(finished == total));
        }
    }

    /// Removes the line.
    pub fn clear(&self) {
        if self.is_live {
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            let _ignored = output.screen.draw("", vec![], usize::MAX);
        }
    }

    /// Writes a text; `is_last` of a count, whose other values may be left out.
    fn write(&self, text: &str, is_last: Option<bool>) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = Line::default();
        if !self.is_live {
            line.push(text, Style::Plain);
            let text = format!("{}\n", without_workflow_commands(&line.text(false)));
            let _ignored = output.screen.draw(&text, vec![], usize::MAX);
            return;
        }
        let is_recent = output.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL);
        if is_last == Some(false) && is_recent {
            return;
        }
        output.drawn = Some(Instant::now());
        line.push(&format!("{}s", self.started.elapsed().as_secs()), Style::Dim);
        line.gap();
        line.push(text, Style::Plain);
        let (Width(columns), _) = (output.size)().unwrap_or((Width(80), Height(24)));
        let _ignored = output.screen.draw("", vec![line], usize::from(columns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow() -> Option<(Width, Height)> {
        Some((Width(30), Height(24)))
    }

    fn written(is_live: bool, verbosity: Verbosity) -> String {
        let mut out = vec![];
        let caps = TerminalCaps { live: is_live, color: false };
        let line = StatusLine::new(&mut out, caps, narrow, verbosity);
        line.step("\u{1b}[2Jrunning every case on the cluster");
        (1..=100).for_each(|finished| line.count(finished, 100, "mutants"));
        line.clear();
        drop(line);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_terminal_shows_one_line_and_keeps_none() {
        let text = written(true, Verbosity::Normal);
        assert!(text.contains(" [2Jrunning every case") && text.contains("100 of 100 mutants"), "{text:?}");
        let mut terminal = vt100::Parser::new(24, 30, 100);
        terminal.process(text.replace('\n', "\r\n").as_bytes());
        assert_eq!(terminal.screen().contents(), "");
    }

    #[test]
    fn other_streams_get_a_few_lines_and_quiet_ones_none() {
        let text = written(false, Verbosity::Normal);
        assert_eq!(text.lines().count(), 1 + COUNT_LINES, "{text:?}");
        assert!(text.ends_with("\n100 of 100 mutants\n") && !text.contains('\u{1b}'), "{text:?}");
        assert_eq!(written(false, Verbosity::Quiet), "");
    }
}
