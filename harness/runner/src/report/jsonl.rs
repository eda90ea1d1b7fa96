//! `artifacts/events.jsonl`: the stream itself, one event per line.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::{Report, ReportError, RunDir, RunEvent};

/// Writes each event as one line, in one write: a process that is killed loses the line it is at, and no other.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: File,
}

impl JsonLines {
    /// Begins the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(run_dir: &RunDir) -> Result<Self, ReportError> {
        let path = run_dir.artifacts().join("events.jsonl");
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(ReportError::Write { path, source }),
        }
    }
}

impl Report for JsonLines {
    fn name(&self) -> &'static str {
        "events"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        let mut line = serde_json::to_vec(event)
            .map_err(|error| ReportError::Form { what: "an event", reason: error.to_string() })?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|source| ReportError::Write { path: self.path.clone(), source })
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::story;

    #[test]
    fn every_event_is_there_before_the_next_one_comes() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut report = JsonLines::create(&run_dir).unwrap();
        for (nth, event) in story::whole().iter().enumerate() {
            report.take(event).unwrap();
            let text = std::fs::read_to_string(run_dir.artifacts().join("events.jsonl")).unwrap();
            let lines: Vec<serde_json::Value> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.len(), nth + 1);
            assert_eq!(lines[nth]["at"], event.at.to_string());
        }
        // Lines of the report are an interface: a reader finds the case and the verdict by these names.
        let text = std::fs::read_to_string(run_dir.artifacts().join("events.jsonl")).unwrap();
        let ended = text.lines().find(|line| line.contains(r#""what":"case-ended""#)).unwrap();
        insta::assert_snapshot!(ended);
    }
}
