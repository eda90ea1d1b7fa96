//! Workflow commands that GitHub Actions shows as annotations of a job.

use std::io::Write;

use crate::attention::same_outcome;
use crate::run_event::{CaseInfo, RunEvent, RunEventKind};
use crate::run_state::{EndedCase, RunState};
use crate::sink::{Report, ReportError};
use crate::text::visible;
use evictlab_judge::Verdict;

/// Number of annotations of each level that GitHub shows for a step; it drops the others silently.
const MAX_ANNOTATIONS: usize = 10;

/// Writes a workflow command for each case that needs attention, as it ends, unless the baseline
/// expects its verdict; and for each case with another verdict than the baseline expects.
#[derive(Debug)]
pub struct Annotations<W> {
    out: W,
    levels: [LevelState; 3],
}

/// Annotations of one level.
#[derive(Debug)]
struct LevelState {
    command: &'static str,
    written: usize,
    /// Annotations for the last free place: the first of them, and their number.
    held_back: Option<(String, usize)>,
}

impl LevelState {
    const fn new(command: &'static str) -> Self {
        Self { command, written: 0, held_back: None }
    }
}

/// An annotation.
struct Annotation {
    level: Level,
    title: String,
    text: String,
    /// Path of the file of the case, which GitHub links if the repository has it.
    file: Option<String>,
}

/// Level of an annotation; its value is the index in [`Annotations::levels`].
#[derive(Clone, Copy)]
enum Level {
    Error,
    Warning,
    Notice,
}

impl<W: Write> Annotations<W> {
    /// Writes to `out`, the standard output of the step.
    pub fn new(out: W) -> Self {
        Self { out, levels: ["error", "warning", "notice"].map(LevelState::new) }
    }

    /// Writes an annotation, or holds it back for the last place.
    fn write(&mut self, annotation: &Annotation) -> Result<(), ReportError> {
        let level = &mut self.levels[annotation.level as usize];
        let file = annotation.file.as_ref().map(|file| format!("file={},", escape_property(file)));
        let line = format!(
            "::{} {}title={}::{}",
            level.command,
            file.unwrap_or_default(),
            escape_property(&annotation.title),
            escape(&visible(&annotation.text))
        );
        if level.written + 1 == MAX_ANNOTATIONS {
            level.held_back.get_or_insert((line, 0)).1 += 1;
            return Ok(());
        }
        level.written += 1;
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }
}

/// The annotation for the case that ended last; `None` if it needs none.
fn case_annotation(run: &RunState) -> Option<Annotation> {
    let (ended, before) = run.ended.split_last()?;
    if run.is_as_expected(ended) || before.iter().any(|other| same_outcome(other, ended)) {
        return None;
    }
    let EndedCase { id, result, .. } = ended;
    let verdict = result.verdict;
    let changed_from = run.changed_from(ended);
    let level = match (verdict, changed_from) {
        (Verdict::Inconclusive, _) => Level::Warning,
        (_, Some(_)) => Level::Error,
        (verdict, None) if verdict.needs_attention() => Level::Error,
        (Verdict::Fixed, None) => Level::Notice,
        _ => return None,
    };
    let text = match changed_from {
        Some(expected) => format!("Expected by the baseline: {expected}. {}", result.why),
        None => result.why.clone(),
    };
    let file = run.case_info(id).map(CaseInfo::repository_path);
    Some(Annotation { level, title: format!("{verdict}: {}", id.full_title()), text, file })
}

impl<W: Write + Send> Report for Annotations<W> {
    fn name(&self) -> &'static str {
        "annotations"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        match &event.kind {
            RunEventKind::CaseEnded { .. } => {
                case_annotation(run).map_or(Ok(()), |annotation| self.write(&annotation))
            }
            RunEventKind::ClusterFailed { cluster, error, .. } => {
                let title = format!("cluster {cluster} failed");
                self.write(&Annotation { level: Level::Error, title, text: error.clone(), file: None })
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>, _run: &RunState) -> Result<(), ReportError> {
        for level in &self.levels {
            match &level.held_back {
                None => {}
                Some((line, 1)) => writeln!(self.out, "{line}")?,
                Some((_, more)) => {
                    writeln!(
                        self.out,
                        "::{} title=evictlab::{more} more, see the job summary",
                        level.command
                    )?;
                }
            }
        }
        Ok(self.out.flush()?)
    }
}

/// Escapes the value of a property of a workflow command.
fn escape_property(text: &str) -> String {
    escape(&visible(text)).replace(':', "%3A").replace(',', "%2C")
}

/// Escapes text for a workflow command.
pub(super) fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn annotated(events: &[RunEvent]) -> String {
        let mut out = vec![];
        let mut report = Box::new(Annotations::new(&mut out));
        let state = fixtures::deliver(&mut *report, events);
        report.finish(&state).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn failures(cases: usize, attempts: u32) -> Vec<RunEvent> {
        let names: Vec<String> = (1..=cases).map(|case| format!("case-{case}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut events = vec![fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &names))];
        for (attempt, name) in
            (1..=attempts).flat_map(|attempt| names.iter().map(move |name| (attempt, name)))
        {
            let ended = fixtures::case_ended(name, "v1.32.13", attempt, Verdict::Failed, "el1 is missing");
            events.push(fixtures::event(1.0, ended));
        }
        events
    }

    #[test]
    fn annotations_are_workflow_commands() {
        insta::assert_snapshot!(annotated(&fixtures::full_run()));
    }

    #[test]
    fn respects_the_limit_of_github() {
        for (failures, last) in [
            (
                failures(10, 1),
                "::error file=cases/message/case-10.yaml,title=failed%3A message/case-10 on v1.32.13::el1 is missing",
            ),
            (failures(11, 1), "::error title=evictlab::2 more, see the job summary"),
            // Attempts with the same outcome share one annotation.
            (
                failures(10, 3),
                "::error file=cases/message/case-10.yaml,title=failed%3A message/case-10 on v1.32.13::el1 is missing",
            ),
        ] {
            let text = annotated(&failures);
            assert_eq!((text.lines().count(), text.lines().last()), (MAX_ANNOTATIONS, Some(last)), "{text}");
        }
    }

    #[test]
    fn annotates_changes_from_the_baseline_only() {
        let expected =
            [("a", Verdict::Failed), ("b", Verdict::Passed), ("c", Verdict::Failed), ("d", Verdict::Passed)];
        let seen = [Verdict::Failed, Verdict::Reproduced, Verdict::Passed, Verdict::Inconclusive];
        let text = annotated(&fixtures::run_with_baseline(&expected, &seen));
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "::error file=cases/message/b.yaml,title=reproduced%3A message/b on v1.32.13::Expected by the baseline: passed. so it was",
                "::error file=cases/message/c.yaml,title=passed%3A message/c on v1.32.13::Expected by the baseline: failed. so it was",
                "::warning file=cases/message/d.yaml,title=inconclusive%3A message/d on v1.32.13::so it was",
            ]
        );
    }
}
