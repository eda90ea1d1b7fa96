//! Baselines: expected verdicts by case and kubelet.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use evictlab_case::document_problem;
use evictlab_rules::KubeletVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run_event::CaseId;
use evictlab_judge::Verdict;

/// Default path of the baseline.
pub const DEFAULT: &str = "results/baseline.json";

/// Expected verdicts by case and kubelet: `{"suite/case": {"v1.32": "passed"}}`. A minor version
/// covers all its patch versions; a full version, such as `v1.32.13`, takes precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Baseline(BTreeMap<String, BTreeMap<String, Verdict>>);

/// A baseline could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The file could not be read.
    #[error("failed to read baseline {}: {source}\nhelp: `evictlab run --write-baseline` creates one", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a baseline.
    #[error("failed to parse baseline {}: {problem}\nhelp: `evictlab run --write-baseline=FILE` writes a baseline", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The problem, with its position.
        problem: String,
    },
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// The file does not exist, or is not a baseline.
    pub fn read(path: &Path) -> Result<Self, BaselineError> {
        let text = fs::read(path).map_err(|source| BaselineError::Read { path: path.to_owned(), source })?;
        serde_json::from_slice(&text).map_err(|error| {
            let shown = path.display().to_string();
            // The parser of case files has the better words for what an author wrote.
            let problem = document_problem::<Self>(&shown, &String::from_utf8_lossy(&text));
            let problem = problem.map_or_else(|| error.to_string(), |problem| problem.to_string());
            BaselineError::Form { path: path.to_owned(), problem }
        })
    }

    /// The expected verdict of a case on the kubelet with this label; `None` if the baseline does
    /// not contain it.
    pub fn expected(&self, suite: &str, case: &str, kubelet: &str) -> Option<Verdict> {
        let of_case = self.0.get(&format!("{suite}/{case}"))?;
        let version = version(kubelet)?;
        of_case.get(&version.to_string()).or_else(|| of_case.get(&minor(&version))).copied()
    }

    /// The expected verdicts of a case, by the labels of `kubelets`.
    pub fn of_case(&self, suite: &str, case: &str, kubelets: &[String]) -> BTreeMap<String, Verdict> {
        let expected = |kubelet: &String| Some((kubelet.clone(), self.expected(suite, case, kubelet)?));
        kubelets.iter().filter_map(expected).collect()
    }

    /// The cases, as suite and name.
    pub fn cases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.keys().filter_map(|case| case.split_once('/'))
    }

    /// Number of cases.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the baseline contains no case.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records a verdict for the kubelet's minor version, `flaky` as `passed`. Verdicts that are
    /// not conclusive are ignored.
    pub(crate) fn record(&mut self, id: &CaseId, verdict: Verdict) {
        if let (Some(version), true) = (version(&id.kubelet), verdict.is_conclusive()) {
            let of_case = self.0.entry(id.suite_and_case()).or_default();
            of_case.insert(minor(&version), verdict.without_tries());
        }
    }
}

/// The version in a kubelet's label: `v1.32.13` of `v1.32.13` and of `v1.32.13=./kubelet`.
pub(crate) fn version(label: &str) -> Option<KubeletVersion> {
    label.split(['=', ' ', ':']).find_map(|part| part.parse().ok())
}

/// The minor version of a kubelet: `v1.32`.
pub(crate) fn minor(version: &KubeletVersion) -> String {
    format!("v{}.{}", version.major, version.minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_version_takes_precedence_over_minor() {
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
    fn parse_errors_have_a_position() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baseline.json");
        fs::write(&path, "{\n  \"message/a\": {\"v1.32\": \"pased\"}\n}").unwrap();
        let error = Baseline::read(&path).unwrap_err().to_string();
        assert!(error.contains("baseline.json:2:") && error.contains("pased"), "{error}");
    }
}
