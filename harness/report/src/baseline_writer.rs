//! `--write-baseline`: a baseline from the verdicts of a run.

use std::io;
use std::path::PathBuf;

use crate::baseline::{Baseline, BaselineError};
use crate::run_dir::write_file;
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};

/// Writes the verdicts of a run into a baseline; entries of other cases stay.
#[derive(Debug)]
pub(crate) struct BaselineWriter {
    path: PathBuf,
}

impl BaselineWriter {
    /// Writes to `path` at the end of the run, unless it was interrupted.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl Report for BaselineWriter {
    fn name(&self) -> &'static str {
        "baseline"
    }

    fn finish(self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        if run.interrupted > 0 {
            return Ok(());
        }
        let mut baseline = match Baseline::read(&self.path) {
            Err(BaselineError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Baseline::default()
            }
            read => read?,
        };
        for ended in &run.ended {
            baseline.record(&ended.id, ended.result.verdict);
        }
        let mut text = serde_json::to_vec_pretty(&baseline)
            .map_err(|error| ReportError::Form { what: "the baseline", reason: error.to_string() })?;
        text.push(b'\n');
        write_file(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use evictlab_judge::Verdict;

    #[test]
    fn inconclusive_verdicts_are_not_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baseline.json");
        for verdict in [Verdict::Reproduced, Verdict::Inconclusive] {
            let state = fixtures::state_after(&[
                fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["a"])),
                fixtures::event(1.0, fixtures::case_ended("a", "v1.32.13", 1, verdict, "why")),
            ]);
            Box::new(BaselineWriter::new(path.clone())).finish(&state).unwrap();
        }
        assert_eq!(
            Baseline::read(&path).unwrap().expected("message", "a", "v1.32.13"),
            Some(Verdict::Reproduced)
        );
    }
}
