//! A run under stress: how many runs and failures so far, every few seconds, and every failure as it comes.

use std::io::Write;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Manners;
use super::paint::markdown;
use super::plain::Lines;
use crate::judge::Verdict;
use crate::report::account::{self, needs_a_person};
use crate::report::ledger::Ledger;
use crate::report::{Report, ReportError, RunDir, RunEvent, What};

/// How often it is told how far the run is, as Go's `stress` does.
const EVERY: Duration = Duration::from_secs(5);

/// The report of a run under stress.
#[derive(Debug)]
pub struct Tally<W> {
    out: W,
    colour: bool,
    run_dir: RunDir,
    lines: Lines,
    ledger: Ledger,
    /// When the first case began, and when the tally was last told. By the wall's time: whoever waits has no other.
    since: Option<(Instant, Instant)>,
}

impl<W: Write> Tally<W> {
    /// Writes to `out`, line by line. At its end it says where `run_dir` is.
    pub fn new(out: W, manners: Manners, run_dir: RunDir) -> Self {
        let colour = manners.colour;
        Self { out, colour, run_dir, lines: Lines::default(), ledger: Ledger::default(), since: None }
    }

    fn tell(&mut self) -> Result<(), ReportError> {
        let Some((began, told)) = &mut self.since else { return Ok(()) };
        if told.elapsed() < EVERY || self.ledger.running.is_empty() {
            return Ok(());
        }
        *told = Instant::now();
        let text = tally(&self.ledger, began.elapsed());
        writeln!(self.out, "{text}")?;
        Ok(self.out.flush()?)
    }
}

/// `45s: 18 runs so far, 0 failures`.
fn tally(ledger: &Ledger, elapsed: Duration) -> String {
    let count =
        |is: fn(Verdict) -> bool| ledger.ended.iter().filter(|ended| is(ended.judgement.verdict)).count();
    let runs = match count(|verdict| verdict != Verdict::Skipped) {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let failures = match count(|verdict| matches!(verdict, Verdict::Failed | Verdict::Error)) {
        1 => "1 failure".to_owned(),
        failures => format!("{failures} failures"),
    };
    let doubt = match count(|verdict| verdict == Verdict::Inconclusive) {
        0 => String::new(),
        inconclusive => format!(", {inconclusive} inconclusive"),
    };
    format!("{}s: {runs} so far, {failures}{doubt}", elapsed.as_secs())
}

/// Whether the event is one of the many of a run that goes as it should.
fn is_usual(what: &What) -> bool {
    match what {
        What::CaseStarted { .. } | What::CaseStep { .. } | What::CaseProgress { .. } => true,
        What::CaseEnded { judgement, .. } => {
            !needs_a_person(judgement.verdict) && judgement.verdict != Verdict::Skipped
        }
        _ => false,
    }
}

impl<W: Write + Send> Report for Tally<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        if let (What::CaseStarted { .. }, None) = (&event.what, self.since) {
            let now = Instant::now();
            self.since = Some((now, now));
        }
        if !is_usual(&event.what) {
            for line in self.lines.of(event) {
                writeln!(self.out, "{}", line.text(self.colour))?;
            }
            self.out.flush()?;
        }
        self.tell()
    }

    fn tick(&mut self, _now: Timestamp) -> Result<(), ReportError> {
        self.tell()
    }

    fn finish(mut self: Box<Self>) -> Result<(), ReportError> {
        let account = account::of_run(&self.ledger, Some(&self.run_dir));
        write!(self.out, "\n{}", markdown(&account, self.colour))?;
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::story;

    fn ended(attempt: u32, verdict: Verdict) -> RunEvent {
        let what = story::case_ended("message", "requests-decide", "v1.32.13", attempt, verdict, "why not");
        story::event(f64::from(attempt), what)
    }

    #[test]
    fn runs_and_failures_are_counted() {
        let mut ledger = Ledger::default();
        let at = Duration::from_millis(45_700);
        assert_eq!(tally(&ledger, at), "45s: 0 runs so far, 0 failures");
        for (attempt, verdict) in [
            (1, Verdict::Passed),
            (2, Verdict::Reproduced),
            (3, Verdict::Failed),
            (4, Verdict::Inconclusive),
            (5, Verdict::Skipped),
        ] {
            ledger.take(&ended(attempt, verdict));
        }
        assert_eq!(tally(&ledger, at), "45s: 4 runs so far, 1 failure, 1 inconclusive");
    }

    #[test]
    fn failures_are_told_as_they_come_and_the_rate_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = vec![];
        let manners = Manners { live: false, colour: false };
        let mut report = Box::new(Tally::new(&mut out, manners, RunDir::at(dir.path()).unwrap()));
        report.take(&story::event(0.0, story::run_started(&["v1.32.13"], &["requests-decide"]))).unwrap();
        for attempt in 1..=20 {
            let verdict = if attempt == 7 { Verdict::Failed } else { Verdict::Passed };
            report.take(&ended(attempt, verdict)).unwrap();
        }
        report.finish().unwrap();
        let text = String::from_utf8(out).unwrap().replace(&dir.path().display().to_string(), "DIR");
        insta::assert_snapshot!(text);
    }
}
