//! `artifacts/events.jsonl`: one event per line.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::run_dir::{RunDir, create_private};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use crate::stream::RunEvent;

/// Writes each event as one line, in one write: a killed process truncates at most the last line.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: File,
}

impl JsonLines {
    /// Creates the file.
    ///
    /// # Errors
    /// The file could not be created.
    pub fn create(run_dir: &RunDir) -> Result<Self, ReportError> {
        let path = run_dir.artifacts().join("events.jsonl");
        match create_private(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(ReportError::Write { path, source }),
        }
    }
}

impl Report for JsonLines {
    fn name(&self) -> &'static str {
        "events"
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        let mut line = serde_json::to_vec(event)
            .map_err(|error| ReportError::Form { what: "an event", reason: error.to_string() })?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|source| ReportError::Write { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn every_event_is_written_immediately() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut report = JsonLines::create(&run_dir).unwrap();
        for (nth, event) in fixtures::full_run().iter().enumerate() {
            report.on_event(event, &RunState::default()).unwrap();
            let text = std::fs::read_to_string(run_dir.artifacts().join("events.jsonl")).unwrap();
            let lines: Vec<serde_json::Value> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.len(), nth + 1);
            assert_eq!(lines[nth]["at"], event.at.to_string());
        }
        // The lines are an interface: other programs read these names.
        let text = std::fs::read_to_string(run_dir.artifacts().join("events.jsonl")).unwrap();
        let ended = text.lines().find(|line| line.contains(r#""what":"case-ended""#)).unwrap();
        insta::assert_snapshot!(ended);
    }
}
