//! The verdicts that are expected: what a run is held against, to tell what changed since.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use evictlab_rules::KubeletVersion;
use serde::{Deserialize, Serialize};

use super::ledger::Ledger;
use super::run_dir::write_file;
use super::{CaseId, Report, ReportError, RunEvent};
use crate::judge::Verdict;

/// Where a baseline lies unless another file is named.
pub const DEFAULT: &str = "results/baseline.json";

/// The expected verdict per case and kubelet: `{"suite/case": {"v1.32": "passed"}}`. A minor stands for all its patches; a whole version, such as
/// `v1.32.13`, goes before its minor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Baseline(BTreeMap<String, BTreeMap<String, Verdict>>);

/// A baseline that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// There is no such file, or it may not be read.
    #[error("the baseline {} cannot be read: {source}\n`evictlab run --write-baseline` writes one.", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is no baseline.
    #[error("the baseline {}:{}:{} is not as it should be: {source}", path.display(), source.line(), source.column())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// The file is not there, or is no baseline.
    pub fn read(path: &Path) -> Result<Self, BaselineError> {
        let text = fs::read(path).map_err(|source| BaselineError::Read { path: path.to_owned(), source })?;
        serde_json::from_slice(&text).map_err(|source| BaselineError::Form { path: path.to_owned(), source })
    }

    /// The verdict that is expected of a case on a kubelet, as labelled; none where the baseline does not have it.
    pub fn expected(&self, suite: &str, case: &str, kubelet: &str) -> Option<Verdict> {
        let of_case = self.0.get(&format!("{suite}/{case}"))?;
        let version = version(kubelet)?;
        of_case.get(&version.to_string()).or_else(|| of_case.get(&minor(&version))).copied()
    }

    /// Notes a verdict for a kubelet's minor. One that says nothing of the kubelet leaves what was.
    fn note(&mut self, id: &CaseId, verdict: Verdict) {
        if let (Some(version), false) = (
            version(&id.kubelet),
            matches!(verdict, Verdict::Inconclusive | Verdict::Error | Verdict::Skipped),
        ) {
            let of_case = self.0.entry(format!("{}/{}", id.suite, id.case)).or_default();
            of_case.insert(minor(&version), verdict);
        }
    }
}

/// The version in a kubelet's label: `v1.32.13`, or that of `v1.32.13=./kubelet`.
fn version(label: &str) -> Option<KubeletVersion> {
    label.split(['=', ' ', ':']).find_map(|part| part.parse().ok())
}

fn minor(version: &KubeletVersion) -> String {
    format!("v{}.{}", version.major, version.minor)
}

/// Writes the verdicts of a run into a baseline; what the run did not come to stays.
#[derive(Debug)]
pub struct BaselineWriter {
    path: PathBuf,
    ledger: Ledger,
}

impl BaselineWriter {
    /// Writes to `path` when the run is over, unless it was interrupted.
    pub fn new(path: PathBuf) -> Self {
        Self { path, ledger: Ledger::default() }
    }
}

impl Report for BaselineWriter {
    fn name(&self) -> &'static str {
        "baseline"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        if self.ledger.interrupted > 0 {
            return Ok(());
        }
        let form = |reason: String| ReportError::Form { what: "baseline", reason };
        let mut baseline = match Baseline::read(&self.path) {
            Err(BaselineError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Baseline::default()
            }
            read => read.map_err(|error| form(error.to_string()))?,
        };
        for ended in &self.ledger.ended {
            baseline.note(&ended.id, ended.judgement.verdict);
        }
        let mut text = serde_json::to_vec_pretty(&baseline).map_err(|error| form(error.to_string()))?;
        text.push(b'\n');
        write_file(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::story;

    #[test]
    fn a_minor_stands_for_its_patches_and_a_patch_goes_before_it() {
        let baseline: Baseline =
            serde_json::from_str(r#"{"message/a": {"v1.32": "passed", "v1.32.0": "reproduced"}}"#).unwrap();
        for (kubelet, expected) in [
            ("v1.32.13", Some(Verdict::Passed)),
            ("v1.32.13=./kubelet", Some(Verdict::Passed)),
            ("v1.32.0", Some(Verdict::Reproduced)),
            ("v1.33.0", None),
            ("./kubelet", None),
        ] {
            assert_eq!(baseline.expected("message", "a", kubelet), expected, "{kubelet}");
        }
    }

    #[test]
    fn what_says_nothing_of_the_kubelet_leaves_what_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baseline.json");
        for verdict in [Verdict::Reproduced, Verdict::Inconclusive] {
            let mut writer = BaselineWriter::new(path.clone());
            writer.take(&story::event(0.0, story::run_started(&["v1.32.13"], &["a"]))).unwrap();
            writer
                .take(&story::event(1.0, story::case_ended("message", "a", "v1.32.13", 1, verdict, "why")))
                .unwrap();
            Box::new(writer).finish().unwrap();
        }
        assert_eq!(
            Baseline::read(&path).unwrap().expected("message", "a", "v1.32.13"),
            Some(Verdict::Reproduced)
        );
    }

    #[test]
    fn a_file_that_is_no_baseline_is_told_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baseline.json");
        fs::write(&path, "{\n  \"message/a\": {\"v1.32\": \"pased\"}\n}").unwrap();
        let error = Baseline::read(&path).unwrap_err().to_string();
        assert!(error.contains("baseline.json:2:") && error.contains("pased"), "{error}");
    }
}
