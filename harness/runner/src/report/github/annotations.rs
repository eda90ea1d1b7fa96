//! Workflow commands: what GitHub shows on top of a job.

use std::io::Write;

use crate::judge::Verdict;
use crate::report::account::{differ_in_attempt_alone, needs_a_person};
use crate::report::ledger::{Ended, Ledger};
use crate::report::{Report, ReportError, RunEvent, What};

/// So many of each kind GitHub shows of a step; of the rest it says nothing.
const SHOWN: usize = 10;

/// Writes a workflow command per case that needs a person, as it ends. What a baseline expects needs nobody; what is otherwise does.
#[derive(Debug)]
pub struct Annotations<W> {
    out: W,
    ledger: Ledger,
    kinds: [Kind; 3],
}

/// The annotations of one kind.
#[derive(Debug)]
struct Kind {
    command: &'static str,
    written: usize,
    /// Those for which there is one place left: the first of them, and how many.
    held: Option<(String, usize)>,
}

impl Kind {
    const fn new(command: &'static str) -> Self {
        Self { command, written: 0, held: None }
    }
}

/// A place in the array of kinds.
#[derive(Clone, Copy)]
enum Level {
    Error,
    Warning,
    Notice,
}

impl<W: Write> Annotations<W> {
    /// Writes to `out`, the standard output of the step.
    pub fn new(out: W) -> Self {
        let kinds = ["error", "warning", "notice"].map(Kind::new);
        Self { out, ledger: Ledger::default(), kinds }
    }

    /// Writes one, or holds it back for the last place.
    fn write(&mut self, level: Level, title: &str, text: &str) -> Result<(), ReportError> {
        let kind = &mut self.kinds[level as usize];
        let title = escaped(title).replace(':', "%3A").replace(',', "%2C");
        let line = format!("::{} title={title}::{}", kind.command, escaped(text));
        if kind.written + 1 == SHOWN {
            kind.held.get_or_insert((line, 0)).1 += 1;
            return Ok(());
        }
        kind.written += 1;
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }

    /// The annotation of the case that has just ended, if it has one.
    fn of_case(&self) -> Option<(Level, String, String)> {
        let (ended, before) = self.ledger.ended.split_last()?;
        if self.ledger.is_as_expected(ended)
            || before.iter().any(|other| differ_in_attempt_alone(other, ended))
        {
            return None;
        }
        let Ended { id, judgement, .. } = ended;
        let verdict = judgement.verdict;
        let level = match (verdict, self.ledger.changed_from(ended)) {
            (Verdict::Inconclusive, _) => Level::Warning,
            (_, Some(_)) => Level::Error,
            (verdict, None) if needs_a_person(verdict) => Level::Error,
            (Verdict::Fixed, None) => Level::Notice,
            _ => return None,
        };
        let title = format!("{verdict}: {}/{} on {}", id.suite, id.title(), id.kubelet);
        let text = match self.ledger.changed_from(ended) {
            Some(expected) => format!("The baseline expects {expected}. {}", judgement.why),
            None => judgement.why.clone(),
        };
        Some((level, title, text))
    }
}

impl<W: Write + Send> Report for Annotations<W> {
    fn name(&self) -> &'static str {
        "annotations"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        match &event.what {
            What::CaseEnded { .. } => {
                let Some((level, title, text)) = self.of_case() else { return Ok(()) };
                self.write(level, &title, &text)
            }
            What::ClusterFailed { cluster, error, .. } => {
                self.write(Level::Error, &format!("cluster {cluster} failed"), error)
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<(), ReportError> {
        for kind in &self.kinds {
            match &kind.held {
                None => {}
                Some((line, 1)) => writeln!(self.out, "{line}")?,
                Some((_, more)) => {
                    writeln!(
                        self.out,
                        "::{} title=evictlab::{more} more: the job's summary has all",
                        kind.command
                    )?;
                }
            }
        }
        Ok(self.out.flush()?)
    }
}

/// As workflow commands want their text.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::story;

    fn annotated(events: &[RunEvent]) -> String {
        let mut out = vec![];
        let mut report = Box::new(Annotations::new(&mut out));
        events.iter().for_each(|event| report.take(event).unwrap());
        report.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn failures(cases: usize, attempts: u32) -> Vec<RunEvent> {
        let names: Vec<String> = (1..=cases).map(|case| format!("case-{case}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut events = vec![story::event(0.0, story::run_started(&["v1.32.13"], &names))];
        for (attempt, name) in
            (1..=attempts).flat_map(|attempt| names.iter().map(move |name| (attempt, name)))
        {
            let ended =
                story::case_ended("message", name, "v1.32.13", attempt, Verdict::Failed, "el1 is missing");
            events.push(story::event(1.0, ended));
        }
        events
    }

    #[test]
    fn annotations_are_workflow_commands() {
        insta::assert_snapshot!(annotated(&story::whole()));
    }

    #[test]
    fn no_more_are_written_than_github_shows() {
        for (failures, last) in [
            (failures(10, 1), "::error title=failed%3A message/case-10 on v1.32.13::el1 is missing"),
            (failures(11, 1), "::error title=evictlab::2 more: the job's summary has all"),
            // Attempts that went alike are one.
            (failures(10, 3), "::error title=failed%3A message/case-10 on v1.32.13::el1 is missing"),
        ] {
            let told = annotated(&failures);
            assert_eq!((told.lines().count(), told.lines().last()), (SHOWN, Some(last)), "{told}");
        }
    }

    #[test]
    fn what_a_baseline_expects_needs_nobody_and_what_is_otherwise_does() {
        let expected =
            [("a", Verdict::Failed), ("b", Verdict::Passed), ("c", Verdict::Failed), ("d", Verdict::Passed)];
        let seen = [Verdict::Failed, Verdict::Reproduced, Verdict::Passed, Verdict::Inconclusive];
        let told = annotated(&story::against_a_baseline(&expected, &seen));
        assert_eq!(
            told.lines().collect::<Vec<_>>(),
            [
                "::error title=reproduced%3A message/b on v1.32.13::The baseline expects passed. so it was",
                "::error title=passed%3A message/c on v1.32.13::The baseline expects failed. so it was",
                "::warning title=inconclusive%3A message/d on v1.32.13::so it was",
            ]
        );
    }
}
