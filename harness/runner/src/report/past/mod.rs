//! A run that was: its directory read back.

mod events;
mod evidence;

use std::io;
use std::path::{Path, PathBuf};

use super::ledger::{Ended, Ledger};
use super::run_dir::RunDir;
use crate::observe::Observations;

/// What a run directory holds.
#[derive(Debug)]
pub struct PastRun {
    run_dir: RunDir,
    pub(super) ledger: Ledger,
}

/// A directory that cannot be read as a run's.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// It is none.
    #[error("{} holds no run: there is no {} in it. Name the directory of a run, such as results/latest", .dir.display(), events::FILE)]
    NoRun {
        /// The directory.
        dir: PathBuf,
    },
    /// It was ended before anything was written.
    #[error("{} tells of nothing: the run was ended at once", .0.display())]
    Empty(PathBuf),
    /// A file of it cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of it is not what evictlab writes.
    #[error("{}:{line}: {why}. Was it changed, or written by another version of evictlab?", .path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

impl PastRun {
    /// Reads what happened; the evidence of a case is read when it is asked for. A run that goes on, or that was ended half way, is read as far
    /// as it came.
    ///
    /// # Errors
    /// No run, or one that cannot be read.
    pub fn read(dir: &Path) -> Result<Self, PastError> {
        Ok(Self { run_dir: RunDir::of(dir), ledger: events::read(dir)? })
    }

    /// Whether it came to its end.
    pub fn is_over(&self) -> bool {
        self.ledger.over.is_some()
    }

    /// The evidence of a case, as far as it was written; none where nothing was seen.
    pub(super) fn evidence(&self, ended: &Ended) -> Result<Option<Observations>, PastError> {
        evidence::read(&self.run_dir.case_dir(&ended.id))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::report::{Evidence, JsonLines, Report, RunDir, story};

    fn written(dir: &Path) {
        let run_dir = RunDir::at(dir).unwrap();
        let mut reports: [Box<dyn Report>; 2] =
            [Box::new(JsonLines::create(&run_dir).unwrap()), Box::new(Evidence::new(run_dir))];
        for event in story::whole() {
            reports.iter_mut().for_each(|report| report.take(&event).unwrap());
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path());
        let run = PastRun::read(dir.path()).unwrap();
        let mut ledger = Ledger::default();
        story::whole().iter().for_each(|event| ledger.take(event));
        assert_eq!(format!("{:?}", run.ledger), format!("{ledger:?}"));
        assert!(run.is_over());
        let failed = run.ledger.ended.iter().find(|ended| ended.id.case == "requests-decide").unwrap();
        let seen = run.evidence(failed).unwrap().unwrap();
        let json = |seen| serde_json::to_value(seen).unwrap();
        assert_eq!(json(seen), json(story::evidence()));
    }

    #[test]
    fn half_a_run_is_read_as_far_as_it_came() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path());
        let events = dir.path().join(events::FILE);
        let text = fs::read_to_string(&events).unwrap();
        fs::write(&events, &text[..text.find("\"nobody-offends\",\"kubelet\"").unwrap()]).unwrap();
        let run = PastRun::read(dir.path()).unwrap();
        assert!(!run.is_over() && !run.ledger.ended.is_empty());
    }

    #[test]
    fn what_is_no_run_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let said = |dir: &Path| {
            PastRun::read(dir).unwrap_err().to_string().replace(&dir.display().to_string(), "DIR")
        };
        assert_eq!(
            said(dir.path()),
            "DIR holds no run: there is no artifacts/events.jsonl in it. Name the directory of a run, such as results/latest"
        );
        written(dir.path());
        let events = dir.path().join(events::FILE);
        let text = fs::read_to_string(&events).unwrap();
        fs::write(&events, text.replacen("\"cluster-step\"", "\"cluster-stop\"", 1)).unwrap();
        let told = said(dir.path());
        assert!(
            told.starts_with(
                "DIR/artifacts/events.jsonl:3: no event of a run, unknown variant `cluster-stop`"
            ),
            "{told}"
        );
        fs::write(&events, "").unwrap();
        assert!(said(dir.path()).contains("tells of nothing"));
    }

    #[test]
    fn a_broken_file_of_evidence_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path());
        let run = PastRun::read(dir.path()).unwrap();
        let failed = run.ledger.ended.iter().find(|ended| ended.id.case == "requests-decide").unwrap();
        let case = run.run_dir.case_dir(&failed.id);
        fs::write(case.join("samples.jsonl"), "{\"t\":1}\n{\"t\":\n").unwrap();
        let told = run.evidence(failed).unwrap_err().to_string();
        assert!(told.contains("samples.jsonl:2: no JSON"), "{told}");
        fs::write(case.join("events.yaml"), "a: 1\nb: [\n").unwrap();
        let told = run.evidence(failed).unwrap_err().to_string();
        assert!(told.contains("events.yaml:") && told.contains("no YAML"), "{told}");
    }
}
