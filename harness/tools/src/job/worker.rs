//! The program of a Job's pods.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use evictlab_case::select::Shard;
use evictlab_cluster::{ClusterAccess, JobIndex, JobIndexError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::archive::PackedRun;
use super::error::JobError;

/// Verdicts of an index, which the pod reports in its termination message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexReport {
    /// Exit status of the run.
    pub exit_code: u8,
    /// Number of cases by verdict.
    pub verdicts: BTreeMap<String, u64>,
}

/// The part of `finished.json` that becomes the report.
#[derive(Deserialize)]
struct FinishedFile {
    metadata: BTreeMap<String, String>,
}

impl IndexReport {
    /// Reads the report of a run directory; `None` if the run has not ended.
    fn read(dir: &Path) -> Option<Self> {
        let finished = fs::read_to_string(dir.join("finished.json")).ok()?;
        let mut metadata = serde_json::from_str::<FinishedFile>(&finished).ok()?.metadata;
        let exit_code = metadata.remove("exit-code")?.parse().ok()?;
        let count = |(verdict, count): (String, String)| Some((verdict, count.parse().ok()?));
        let verdicts = metadata.into_iter().filter_map(count).filter(|(_, count)| *count > 0).collect();
        Some(Self { exit_code, verdicts })
    }
}

/// This process is not the worker of an index.
#[derive(Debug, thiserror::Error)]
pub enum JobWorkerError {
    /// The environment is not that of a pod of a Job.
    #[error(transparent)]
    Index(#[from] JobIndexError),
    /// The options of the Job and of the worker differ.
    #[error("failed to run index {index}: the job has {indexes} indexes")]
    TooLarge {
        /// Number of indexes.
        indexes: usize,
        /// Index of this pod, from 0.
        index: usize,
    },
}

/// Runs the shard of an index.
pub struct JobWorker {
    index: JobIndex,
    indexes: usize,
}

impl JobWorker {
    /// The worker in this pod.
    ///
    /// # Errors
    /// The environment is not that of a pod of the Job, or the index is too large.
    pub fn of_this_pod(indexes: usize) -> Result<Self, JobWorkerError> {
        let index = JobIndex::of_this_pod()?;
        if index.index < indexes {
            Ok(Self { index, indexes })
        } else {
            Err(JobWorkerError::TooLarge { indexes, index: index.index })
        }
    }

    /// The shard of the index.
    pub fn shard(&self) -> Shard {
        Shard { part: self.index.index + 1, of: self.indexes }
    }

    /// Removes what an earlier attempt of the index left in the cluster; returns the number of
    /// namespaces.
    ///
    /// # Errors
    /// The API server refuses or does not answer.
    pub async fn remove_earlier_attempts(
        &self,
        access: &ClusterAccess,
        step: &dyn Fn(&str),
    ) -> Result<usize, JobError> {
        let cluster = access.connect().await?;
        Ok(cluster.remove_earlier_attempts(&self.index, step).await?)
    }

    /// Writes the results of the run to the log, and the verdicts to the termination message. `id`
    /// is random. Returns whether the evidence was left out.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn report(&self, dir: &Path, id: &str, message: &Path) -> io::Result<bool> {
        let packed = PackedRun::pack(dir)?;
        packed.write_lines(id, io::stdout().lock())?;
        // The kubelet creates the file; elsewhere it does not exist.
        if let (Some(report), Ok(mut file)) =
            (IndexReport::read(dir), OpenOptions::new().write(true).truncate(true).open(message))
        {
            file.write_all(serde_json::to_string(&report)?.as_bytes())?;
        }
        Ok(packed.without_evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_verdicts_of_a_run() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(IndexReport::read(dir.path()), None);
        let finished = r#"{"timestamp": 1, "passed": false, "result": "FAILURE", "metadata": {"passed": "3", "failed": "1", "error": "0", "exit-code": "1"}}"#;
        fs::write(dir.path().join("finished.json"), finished).unwrap();
        let verdicts = [("failed".to_owned(), 1), ("passed".to_owned(), 3)].into();
        assert_eq!(IndexReport::read(dir.path()), Some(IndexReport { exit_code: 1, verdicts }));
    }
}
