//! `--record DIR`: the evidence of each case in one file, as test data for the rules and the model.

use std::path::PathBuf;

use crate::redact::redacted;
use crate::run_dir::{ensure_writable, file_name, make_dir, write_file};
use crate::run_event::{CaseId, RunEvent, RunEventKind};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use evictlab_evidence::Observations;

/// Writes the [`Observations`] of each case to `DIR/<kubelet version>/<case>.json`, from the second
/// attempt on `<case>-N.json`. The version is the one that the node reported.
#[derive(Debug)]
pub struct Recording {
    dir: PathBuf,
}

impl Recording {
    /// Records under `dir`, which is created if it does not exist.
    ///
    /// # Errors
    /// The directory cannot be created or written.
    pub fn new(dir: PathBuf) -> Result<Self, ReportError> {
        make_dir(&dir)?;
        ensure_writable(&dir)?;
        Ok(Self { dir })
    }

    fn write(&self, id: &CaseId, evidence: &Observations) -> Result<(), ReportError> {
        let form =
            |error: serde_json::Error| ReportError::Form { what: "a recording", reason: error.to_string() };
        let recording = redacted(serde_json::to_value(evidence).map_err(form)?, evidence.namespace());
        let dir = self.dir.join(file_name(&evidence.kubelet_version));
        make_dir(&dir)?;
        let mut name = file_name(&id.case);
        if id.attempt > 1 {
            name.push_str(&format!("-{}", id.attempt));
        }
        let text = serde_json::to_vec(&recording).map_err(form)?;
        write_file(&dir.join(format!("{name}.json")), &text)
    }
}

impl Report for Recording {
    fn name(&self) -> &'static str {
        "recording"
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        match &event.kind {
            RunEventKind::CaseEnded { id, evidence: Some(evidence), .. } => self.write(id, evidence),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::fixtures;

    fn record(id: CaseId, evidence: &Observations) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let report = Recording::new(dir.path().join("new")).unwrap();
        report.write(&id, evidence).unwrap();
        let version = std::fs::read_dir(dir.path().join("new")).unwrap().next().unwrap().unwrap();
        let file = std::fs::read_dir(version.path()).unwrap().next().unwrap().unwrap();
        let path = file.path().strip_prefix(dir.path()).unwrap().to_string_lossy().into_owned();
        (path, std::fs::read_to_string(file.path()).unwrap())
    }

    #[test]
    fn recordings_round_trip_to_the_byte() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/recordings");
        let folder = std::env::var_os("EVICTLAB_RECORDINGS").unwrap_or_else(|| own.into());
        let entries = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let versions = entries(Path::new(&folder)).filter(|path| path.is_dir());
        let mut count = 0;
        for real in versions.flat_map(|version| entries(&version).collect::<Vec<_>>()) {
            let text = std::fs::read_to_string(&real).unwrap();
            let evidence: Observations = serde_json::from_str(&text).unwrap();
            let (path, written) = record(fixtures::id("message", "sidecars", "patched", 1), &evidence);
            assert_eq!(path, format!("new/{}/sidecars.json", evidence.kubelet_version));
            // Recordings of format 3, whose other keys are those of today.
            let renamed = [("{\"scenario\":", "{\"case\":"), (",\"tuneSeconds\":", ",\"configureSeconds\":")];
            let text = renamed.iter().fold(text, |text, (old, new)| text.replacen(old, new, 1));
            assert!(written == text.trim_end(), "{} differs after a round trip", real.display());
            count += 1;
        }
        assert!(count > 0, "no recordings in {}", Path::new(&folder).display());
    }

    #[test]
    fn fields_of_the_harness_round_trip() {
        let evidence = fixtures::evidence();
        let (path, text) = record(fixtures::id("message", "sidecars-are-named", "v1.32.13", 2), &evidence);
        assert_eq!(path, "new/v1.32.13/sidecars-are-named-2.json");
        let back: Observations = serde_json::from_str(&text).unwrap();
        let [there, back]: [Value; 2] = [&evidence, &back].map(|it| serde_json::to_value(it).unwrap());
        assert_eq!(there, back);
        for field in ["configz", "evictionsCounted", "apiRejection"] {
            assert!(back.get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn rejects_an_unwritable_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Recording::new(file.path().to_owned()).is_err());
    }
}
