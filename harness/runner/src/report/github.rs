//! What GitHub Actions shows of a run: a summary of the job, and annotations.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use super::account::{self, needs_a_person};
use super::ledger::Ledger;
use super::{Report, ReportError, RunEvent, What};
use crate::judge::Verdict;

/// GitHub drops a step's summary over 1 MiB whole.
const LIMIT: usize = 1024 * 1024 - 1024;

/// Appends the account of the run to the file that `GITHUB_STEP_SUMMARY` names.
#[derive(Debug)]
pub struct JobSummary {
    path: PathBuf,
    ledger: Ledger,
}

impl JobSummary {
    /// Appends to `path` when the run is over.
    pub fn new(path: PathBuf) -> Self {
        Self { path, ledger: Ledger::default() }
    }
}

impl Report for JobSummary {
    fn name(&self) -> &'static str {
        "job summary"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        let mut account = account::of_run(&self.ledger, None);
        if account.len() > LIMIT {
            account = format!("{}\n{}\n", account::matrix(&self.ledger), account::totals(&self.ledger));
        }
        let text = format!("## evictlab\n\n{account}");
        let file = OpenOptions::new().append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| ReportError::Write { path: self.path, source })
    }
}

/// Writes a workflow command per case that needs a person, as it ends: GitHub shows them on top of the job.
#[derive(Debug)]
pub struct Annotations<W> {
    out: W,
}

impl<W: Write> Annotations<W> {
    /// Writes to `out`, the standard output of the step.
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write + Send> Report for Annotations<W> {
    fn name(&self) -> &'static str {
        "annotations"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        let (title, text, command) = match &event.what {
            What::CaseEnded { id, judgement, .. } if needs_a_person(judgement.verdict) => (
                format!("{}: {}/{} on {}", judgement.verdict, id.suite, id.title(), id.kubelet),
                &judgement.why,
                if judgement.verdict == Verdict::Inconclusive { "warning" } else { "error" },
            ),
            What::CaseEnded { id, judgement, .. } if judgement.verdict == Verdict::Fixed => {
                (format!("fixed: {}/{} on {}", id.suite, id.title(), id.kubelet), &judgement.why, "notice")
            }
            What::ClusterFailed { cluster, error, .. } => {
                (format!("cluster {cluster} failed"), error, "error")
            }
            _ => return Ok(()),
        };
        writeln!(
            self.out,
            "::{command} title={}::{}",
            escaped(&title).replace(':', "%3A").replace(',', "%2C"),
            escaped(text)
        )?;
        Ok(self.out.flush()?)
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
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

    #[test]
    fn a_summary_is_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.md");
        std::fs::write(&path, "before\n").unwrap();
        let mut report = Box::new(JobSummary::new(path.clone()));
        story::whole().iter().for_each(|event| report.take(event).unwrap());
        report.finish().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with("before\n## evictlab\n\n| case"), "{text}");
        assert!(text.contains("### failed: message/requests-decide"), "{text}");
    }

    #[test]
    fn a_summary_that_github_would_drop_is_shortened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.md");
        let mut report = Box::new(JobSummary::new(path.clone()));
        let ended =
            story::case_ended("message", "a", "v1.32.13", 1, Verdict::Failed, &"why ".repeat(LIMIT / 4));
        report.take(&story::event(0.0, story::run_started(&["v1.32.13"], &["a"]))).unwrap();
        report.take(&story::event(1.0, ended)).unwrap();
        report.finish().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(
            text.contains("| message/a | failed 8.2s |") && text.contains("1 failed"),
            "{} bytes",
            text.len()
        );
        assert!(text.len() < 1000);
    }

    #[test]
    fn annotations_are_workflow_commands() {
        let mut out = vec![];
        let mut report = Annotations::new(&mut out);
        story::whole().iter().for_each(|event| report.take(event).unwrap());
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }
}
