//! `--record DIR`: each case as a recording, to feed the tests of the rules and of the model.

use std::path::PathBuf;

use super::redact::redacted;
use super::run_dir::{file_name, make_dir, need_room, write_file};
use super::{CaseId, Report, ReportError, RunEvent, What};
use crate::observe::Observations;

/// Writes `DIR/<kubelet version>/<case>.json`, from the second attempt on `<case>-N.json`, as each case ends with
/// evidence: [`Observations`] as they are. The version is the one that the node reported.
#[derive(Debug)]
pub struct Recording {
    dir: PathBuf,
}

impl Recording {
    /// Records under `dir`, made if it is not there.
    ///
    /// # Errors
    /// It cannot be made or written to.
    pub fn new(dir: PathBuf) -> Result<Self, ReportError> {
        make_dir(&dir)?;
        need_room(&dir)?;
        Ok(Self { dir })
    }

    fn write(&self, id: &CaseId, evidence: &Observations) -> Result<(), ReportError> {
        let form =
            |error: serde_json::Error| ReportError::Form { what: "a recording", reason: error.to_string() };
        let recording = redacted(serde_json::to_value(evidence).map_err(form)?);
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

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        match &event.what {
            What::CaseEnded { id, evidence: Some(evidence), .. } => self.write(id, evidence),
            _ => Ok(()),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::report::story;

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
    fn recordings_of_real_kubelets_come_back_to_the_byte() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/recordings");
        let folder = std::env::var_os("EVICTLAB_RECORDINGS").unwrap_or_else(|| own.into());
        let entries = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let versions = entries(Path::new(&folder)).filter(|path| path.is_dir());
        let mut count = 0;
        for real in versions.flat_map(|version| entries(&version).collect::<Vec<_>>()) {
            let text = std::fs::read_to_string(&real).unwrap();
            let evidence: Observations = serde_json::from_str(&text).unwrap();
            let (path, written) = record(story::id("message", "sidecars", "patched", 1), &evidence);
            assert_eq!(path, format!("new/{}/sidecars.json", evidence.kubelet_version));
            assert!(written == text.trim_end(), "{} does not come back as it was", real.display());
            count += 1;
        }
        assert!(count > 0, "no recordings in {}", Path::new(&folder).display());
    }

    #[test]
    fn what_the_harness_adds_comes_back_too() {
        let evidence = story::evidence();
        let (path, text) = record(story::id("message", "sidecars-are-named", "v1.32.13", 2), &evidence);
        assert_eq!(path, "new/v1.32.13/sidecars-are-named-2.json");
        let back: Observations = serde_json::from_str(&text).unwrap();
        let [there, back]: [Value; 2] = [&evidence, &back].map(|it| serde_json::to_value(it).unwrap());
        assert_eq!(there, back);
        for field in ["configz", "evictionsCounted", "refused"] {
            assert!(back.get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn a_place_that_takes_no_recording_is_refused_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Recording::new(file.path().to_owned()).is_err());
    }
}
