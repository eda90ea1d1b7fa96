//! Progress of a stress run: failures as they occur, and totals every few seconds.

use std::io::Write;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::plain_log::LogFormatter;
use super::summary::write_summary;
use crate::output_options::{OutputOptions, Verbosity};
use crate::run_dir::RunDir;
use crate::run_event::{RunEvent, RunEventKind};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use crate::text::count_noun;
use evictlab_judge::Verdict;

/// Time between two lines with the totals, as in Go's `stress`.
const TALLY_INTERVAL: Duration = Duration::from_secs(5);

/// The report of a stress run on standard output.
#[derive(Debug)]
pub struct Tally<W> {
    out: W,
    options: OutputOptions,
    run_dir: RunDir,
    formatter: LogFormatter,
    /// Set by the start of the first case.
    clock: Option<TallyClock>,
}

/// Real times, also in a model.
#[derive(Clone, Copy, Debug)]
struct TallyClock {
    /// Start of the first case.
    started: Instant,
    /// Time of the last line with totals; at first the start.
    last_totals: Instant,
}

impl<W: Write> Tally<W> {
    /// Writes to `out`, line by line, and at the end the summary with the path of `run_dir`.
    pub fn new(out: W, options: OutputOptions, run_dir: RunDir) -> Self {
        Self { out, options, run_dir, formatter: LogFormatter::default(), clock: None }
    }

    fn write_totals_if_due(&mut self, run: &RunState) -> Result<(), ReportError> {
        let Some(clock) = &mut self.clock else { return Ok(()) };
        let is_quiet = self.options.verbosity == Verbosity::Quiet;
        if is_quiet || clock.last_totals.elapsed() < TALLY_INTERVAL || run.running.is_empty() {
            return Ok(());
        }
        clock.last_totals = Instant::now();
        let text = tally(run, clock.started.elapsed());
        writeln!(self.out, "{text}")?;
        Ok(self.out.flush()?)
    }
}

/// Renders the totals: `45s: 18 runs so far, 0 failures`.
fn tally(run: &RunState, elapsed: Duration) -> String {
    let number = |is: fn(Verdict) -> bool| run.ended.iter().filter(|ended| is(ended.result.verdict)).count();
    let runs = count_noun(number(|verdict| verdict != Verdict::Skipped), "run");
    let failures = count_noun(number(Verdict::is_failure), "failure");
    let inconclusive = match number(|verdict| verdict == Verdict::Inconclusive) {
        0 => String::new(),
        inconclusive => format!(", {inconclusive} inconclusive"),
    };
    format!("{}s: {runs} so far, {failures}{inconclusive}", elapsed.as_secs())
}

/// Returns whether an event is routine in a successful run, and not shown.
fn is_routine(kind: &RunEventKind) -> bool {
    match kind {
        RunEventKind::CaseStarted { .. }
        | RunEventKind::CaseStep { .. }
        | RunEventKind::CaseProgress { .. }
        | RunEventKind::CaseRetried { .. } => true,
        RunEventKind::CaseEnded { result, .. } => {
            !result.verdict.needs_attention() && !matches!(result.verdict, Verdict::Skipped | Verdict::Flaky)
        }
        RunEventKind::RunStarted { .. }
        | RunEventKind::ClusterStarted { .. }
        | RunEventKind::ClusterStep { .. }
        | RunEventKind::ClusterWarning { .. }
        | RunEventKind::ClusterReady { .. }
        | RunEventKind::ClusterFailed { .. }
        | RunEventKind::ClusterDeleted { .. }
        | RunEventKind::CaseInterrupted { .. }
        | RunEventKind::Interrupted { .. }
        | RunEventKind::ReportFailed { .. }
        | RunEventKind::TimedOut
        | RunEventKind::RunEnded { .. } => false,
    }
}

impl<W: Write + Send> Report for Tally<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        if let (RunEventKind::CaseStarted { .. }, None) = (&event.kind, self.clock) {
            let now = Instant::now();
            self.clock = Some(TallyClock { started: now, last_totals: now });
        }
        if !is_routine(&event.kind) {
            for line in self.formatter.lines(event, run) {
                writeln!(self.out, "{}", line.text(self.options.color))?;
            }
            self.out.flush()?;
        }
        self.write_totals_if_due(run)
    }

    fn on_tick(&mut self, _now: Timestamp, run: &RunState) -> Result<(), ReportError> {
        self.write_totals_if_due(run)
    }

    fn finish(mut self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        // The line with the start of the run is always shown.
        Ok(write_summary(&mut self.out, run, Some(&self.run_dir), self.options, true)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn ended(attempt: u32, verdict: Verdict) -> RunEvent {
        let kind = fixtures::case_ended("requests-decide", "v1.32.13", attempt, verdict, "why not");
        fixtures::event(f64::from(attempt), kind)
    }

    #[test]
    fn counts_runs_and_failures() {
        let mut state = RunState::default();
        let at = Duration::from_millis(45_700);
        assert_eq!(tally(&state, at), "45s: 0 runs so far, 0 failures");
        for (attempt, verdict) in [
            (1, Verdict::Passed),
            (2, Verdict::Reproduced),
            (3, Verdict::Failed),
            (4, Verdict::Inconclusive),
            (5, Verdict::Skipped),
        ] {
            state.apply(&ended(attempt, verdict));
        }
        assert_eq!(tally(&state, at), "45s: 4 runs so far, 1 failure, 1 inconclusive");
    }

    #[test]
    fn shows_failures_and_the_final_rate() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = vec![];
        let mut report = Box::new(Tally::new(
            &mut out,
            fixtures::plain_output(Verbosity::Normal),
            RunDir::at(dir.path()).unwrap(),
        ));
        let started = fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["requests-decide"]));
        let attempts = (1..=20)
            .map(|attempt| ended(attempt, if attempt == 7 { Verdict::Failed } else { Verdict::Passed }));
        let events: Vec<RunEvent> = std::iter::once(started).chain(attempts).collect();
        let state = fixtures::deliver(&mut *report, &events);
        report.finish(&state).unwrap();
        let text = String::from_utf8(out).unwrap().replace(&dir.path().display().to_string(), "DIR");
        insta::assert_snapshot!(text);
    }
}
