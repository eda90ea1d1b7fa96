//! Verdicts and messages of runs, by version of the kubelet and of cgroups; those of real kubelets
//! as files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message_shape::shapes;
use crate::baseline::version;
use crate::recorded::{RecordedRun, RecordedRunError};
use crate::run_event::CaseId;
use crate::run_state::EndedCase;
use evictlab_judge::{CaseResult, Verdict};
use evictlab_rules::{CgroupVersion, KubeletVersion};

/// Results of all cases on kubelets of one version, on hosts with one cgroup version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubeletResults {
    /// Version of the kubelet, such as `v1.36.2`.
    pub kubelet: String,
    /// cgroup version of the hosts.
    pub cgroup: CgroupVersion,
    /// Results by `suite/case`.
    pub cases: BTreeMap<String, CaseResults>,
}

/// Results of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResults {
    /// Number of executions with each verdict; `flaky` counts as `passed`.
    pub verdicts: BTreeMap<Verdict, u32>,
    /// Eviction messages of the executions with a conclusive verdict, without measured amounts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub messages: BTreeSet<String>,
}

/// Results could not be collected, read or written.
#[derive(Debug, thiserror::Error)]
pub enum KubeletResultsError {
    /// The run has modelled kubelets.
    #[error(
        "failed to record run {0}: its kubelets are modelled\nhelp: name a run with --backend kind or existing"
    )]
    Modelled(String),
    /// A run could not be read.
    #[error(transparent)]
    Run(#[from] RecordedRunError),
    /// A directory or file could not be read.
    #[error("failed to read {}: {source}\nhelp: `evictlab parity record` writes results of real kubelets", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is not one of results.
    #[error("failed to parse {}:{}:{}: {source}", path.display(), source.line(), source.column())]
    Form {
        /// The file.
        path: PathBuf,
        /// The error, with its position.
        source: serde_json::Error,
    },
    /// A file could not be written.
    #[error("failed to write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl KubeletResults {
    /// Returns results without cases.
    pub fn new(kubelet: &KubeletVersion, cgroup: CgroupVersion) -> Self {
        Self { kubelet: kubelet.to_string(), cgroup, cases: BTreeMap::new() }
    }

    /// Returns whether the version of the kubelet has a build label, such as `v1.36.3+mine`: it may
    /// differ from the release.
    pub fn is_of_own_build(&self) -> bool {
        self.kubelet.contains('+')
    }

    /// Collects the results of runs on real kubelets, one for each version of a kubelet and of
    /// cgroups. The cgroup version is that in the evidence of the cases. Of kubelets with the same
    /// version in one run, only the first counts: the others are patched.
    ///
    /// # Errors
    /// A run has modelled kubelets, or its evidence cannot be read.
    pub fn collect(runs: &[RecordedRun]) -> Result<Vec<Self>, KubeletResultsError> {
        let mut all: BTreeMap<(String, CgroupVersion), Self> = BTreeMap::new();
        for run in runs {
            let Some(start) = &run.state().run else { continue };
            if start.model.is_some() {
                return Err(KubeletResultsError::Modelled(start.id.clone()));
            }
            for label in start.kubelets.iter().filter(|label| !is_numbered(label, &start.kubelets)) {
                let ended: Vec<_> =
                    run.state().ended.iter().filter(|ended| ended.id.kubelet == *label).collect();
                let (Some(version), Some(cgroup)) = (version(label), cgroup(run, &ended)?) else { continue };
                let results =
                    all.entry((version.to_string(), cgroup)).or_insert_with(|| Self::new(&version, cgroup));
                ended.into_iter().for_each(|ended| results.add(&ended.id, &ended.result));
                results.cases.values_mut().for_each(CaseResults::forget_skipped);
            }
        }
        Ok(all.into_values().collect())
    }

    /// Adds an execution of a case.
    pub fn add(&mut self, id: &CaseId, result: &CaseResult) {
        let case = self.cases.entry(id.suite_and_case()).or_default();
        let verdict = result.verdict.without_tries();
        *case.verdicts.entry(verdict).or_default() += 1;
        if verdict.is_conclusive() {
            case.messages.extend(result.evictions.iter().flat_map(shapes));
        }
    }

    /// Reads all files in a directory, in the order of the kubelets' versions.
    ///
    /// # Errors
    /// The directory or a file cannot be read, or a file contains something else.
    pub fn read_dir(dir: &Path) -> Result<Vec<Self>, KubeletResultsError> {
        let failed = |source| KubeletResultsError::Read { path: dir.to_owned(), source };
        let mut all = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                all.push(Self::read(&path)?);
            }
        }
        all.sort_by_key(|results| (version(&results.kubelet), results.cgroup));
        Ok(all)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or contains something else.
    pub fn read(path: &Path) -> Result<Self, KubeletResultsError> {
        let text =
            fs::read(path).map_err(|source| KubeletResultsError::Read { path: path.to_owned(), source })?;
        serde_json::from_slice(&text)
            .map_err(|source| KubeletResultsError::Form { path: path.to_owned(), source })
    }

    /// Name of the file in a directory of results.
    pub fn file_name(&self) -> String {
        format!("{}-cgroup-{}.json", self.kubelet, self.cgroup)
    }

    /// Writes the results to their file in `dir`, and returns its path. Cases in the file for which
    /// these results have no conclusive verdict are kept.
    ///
    /// # Errors
    /// The file that exists cannot be read, or the file cannot be written.
    pub fn update(&self, dir: &Path) -> Result<PathBuf, KubeletResultsError> {
        let path = dir.join(self.file_name());
        let failed = |source| KubeletResultsError::Write { path: path.clone(), source };
        let mut results = self.clone();
        if path.exists() {
            for (case, earlier) in Self::read(&path)?.cases {
                if !results.cases.get(&case).is_some_and(CaseResults::is_conclusive) {
                    results.cases.insert(case, earlier);
                }
            }
        }
        fs::create_dir_all(dir).map_err(failed)?;
        let text = serde_json::to_string_pretty(&results).map_err(|error| failed(error.into()))?;
        fs::write(&path, text + "\n").map_err(failed)?;
        Ok(path)
    }
}

impl CaseResults {
    /// Returns whether an execution has a conclusive verdict.
    pub(super) fn is_conclusive(&self) -> bool {
        self.verdicts.keys().any(|verdict| verdict.is_conclusive())
    }

    /// Removes executions that were skipped, as by an interrupt, if others exist.
    fn forget_skipped(&mut self) {
        if self.verdicts.len() > 1 {
            self.verdicts.remove(&Verdict::Skipped);
        }
    }
}

/// Returns whether a label, such as `v1.36.2-2`, is that of a further kubelet with the version of
/// another.
fn is_numbered(label: &str, labels: &[String]) -> bool {
    let numbered = label.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok());
    numbered.is_some_and(|(first, _)| labels.iter().any(|other| other == first))
}

/// The cgroup version that the evidence of the cases contains; `None` if no case has evidence.
fn cgroup(run: &RecordedRun, ended: &[&EndedCase]) -> Result<Option<CgroupVersion>, RecordedRunError> {
    for ended in ended {
        if let Some(observations) = run.evidence(ended)? {
            // Old recordings, which do not state it, are of v1.
            return Ok(Some(observations.cgroup.unwrap_or(CgroupVersion::V1)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EvidenceWriter, JsonLines, RunDir, fixtures};

    fn recorded(dir: &Path) -> RecordedRun {
        let run_dir = RunDir::at(dir).unwrap();
        let events = fixtures::full_run();
        fixtures::deliver(&mut JsonLines::create(&run_dir).unwrap(), &events);
        fixtures::deliver(&mut EvidenceWriter::new(run_dir), &events);
        RecordedRun::read(dir).unwrap()
    }

    #[test]
    fn results_of_a_run_are_written_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let all = KubeletResults::collect(&[recorded(&dir.path().join("run"))]).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&all).unwrap());
        let real = dir.path().join("real");
        // A case of an earlier run is kept, one with a new verdict is replaced.
        let mut earlier = all[0].clone();
        let again = "message/requests-decide".to_owned();
        earlier.cases.get_mut(&again).unwrap().verdicts = BTreeMap::from([(Verdict::Failed, 7)]);
        let other =
            CaseResults { verdicts: BTreeMap::from([(Verdict::Passed, 1)]), ..CaseResults::default() };
        earlier.cases.insert("message/other".to_owned(), other.clone());
        earlier.update(&real).unwrap();
        for results in &all {
            results.update(&real).unwrap();
        }
        let mut expected = all;
        expected[0].cases.insert("message/other".to_owned(), other);
        assert_eq!(KubeletResults::read_dir(&real).unwrap(), expected);
    }

    #[test]
    fn a_build_label_is_an_own_build() {
        let rows = [("v1.36.3", false), ("v1.36.3+mine", true), ("v1.37.0-rc.1", false)];
        for (version, is_own) in rows {
            assert_eq!(
                KubeletResults::new(&version.parse().unwrap(), CgroupVersion::V1).is_of_own_build(),
                is_own
            );
        }
    }

    #[test]
    fn further_kubelets_of_a_version_are_patched() {
        let labels = ["v1.36.2", "v1.36.2-2", "v1.37.0-1", "v1.38.0-alpha.3"].map(str::to_owned);
        let numbered = labels.each_ref().map(|label| is_numbered(label, &labels));
        assert_eq!(numbered, [false, true, false, false]);
    }

    #[test]
    fn invalid_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = KubeletResults::read_dir(&dir.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none: ") && error.contains("evictlab parity record"), "{error}");
        fs::write(dir.path().join("v1.36.2-cgroup-v1.json"), "{\n\"kubelet\": 1}").unwrap();
        let error = KubeletResults::read_dir(dir.path()).unwrap_err().to_string();
        assert!(error.contains("v1.36.2-cgroup-v1.json:2:12: "), "{error}");
    }
}
