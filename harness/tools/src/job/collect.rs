//! The results of a Job's indexes, from the logs of their pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evictlab_cluster::{ClusterClient, JobName, api_error_message};
use evictlab_report::create_private_dir;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, ResourceExt};

use super::archive::{ArchiveError, unpack};
use super::error::JobError;
use super::status::{JobPhase, has_ended, read_job_through_outages};

/// Interval of looks at the pods.
const INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of bytes of a log: an archive of results, in lines, and the output of the run.
const MAX_RESULTS_LOG_BYTES: i64 = 64 << 20;

/// The results of a Job.
#[derive(Debug)]
pub struct Collected {
    /// Directories of the runs, by index.
    pub runs: BTreeMap<usize, PathBuf>,
    /// Indexes without results.
    pub missing: Vec<usize>,
}

/// Writes the results of each index to a directory in `dir`, as soon as its pod has ended; with
/// `wait` until the Job has ended. Of several attempts of an index, the last one with results
/// counts. `step` receives a line for each.
///
/// # Errors
/// The Job does not exist; `dir` is not empty or cannot be written; the API server does not answer.
pub async fn collect(
    cluster: &ClusterClient,
    job: &JobName,
    dir: &Path,
    wait: bool,
    step: &dyn Fn(&str),
) -> Result<Collected, JobError> {
    let failed = |source| JobError::Write { dir: dir.to_owned(), source };
    create_empty(dir)?;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &job.namespace);
    let mut read = BTreeSet::new();
    let mut runs = BTreeMap::new();
    loop {
        let state = read_job_through_outages(cluster, job).await?;
        for (index, pod) in state.pods.iter().filter(|(_, pod)| has_ended(pod)) {
            if !read.insert(pod.uid()) {
                continue;
            }
            let partial = dir.join(format!(".index-{index}"));
            match read_results(&pods, &pod.name_any(), &partial).await {
                Ok(()) => {
                    let target = dir.join(format!("index-{index}"));
                    replace(&partial, &target).map_err(failed)?;
                    step(&format!(
                        "index {index}: results of pod {} are in {}",
                        pod.name_any(),
                        target.display()
                    ));
                    runs.insert(*index, target);
                }
                Err(problem) => {
                    step(&format!("index {index}: pod {} has no results: {problem}", pod.name_any()))
                }
            }
        }
        let is_over =
            state.view.phase != JobPhase::Running && state.pods.iter().all(|(_, pod)| has_ended(pod));
        if is_over || !wait {
            let indexes = state.view.indexes.iter().map(|index| index.index);
            let missing = indexes.filter(|index| !runs.contains_key(index)).collect();
            return Ok(Collected { runs, missing });
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// A pod does not have results.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PodResultsError {
    /// The log of the pod cannot be read.
    #[error("failed to read its log: {}", api_error_message(.0))]
    Log(Box<kube::Error>),
    /// The log does not contain the end of the results.
    #[error("it was killed")]
    Killed,
    /// The results in the log are damaged, or cannot be written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The partial results cannot be removed.
    #[error("{problem}; failed to remove {}: {source}", dir.display())]
    Remove {
        /// The first error.
        problem: Box<Self>,
        /// Directory of the partial results.
        dir: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Writes the results in the log of a pod to a directory.
async fn read_results(pods: &Api<Pod>, pod: &str, dir: &Path) -> Result<(), PodResultsError> {
    let options = LogParams { limit_bytes: Some(MAX_RESULTS_LOG_BYTES), ..LogParams::default() };
    let log = pods.logs(pod, &options).await.map_err(|error| PodResultsError::Log(Box::new(error)))?;
    unpack_into_new(&log, dir)
}

/// Unpacks the results in a log to a directory, which does not exist after an error: files of this
/// attempt would be among those of the next one.
fn unpack_into_new(log: &str, dir: &Path) -> Result<(), PodResultsError> {
    let problem = match unpack(log, dir) {
        Ok(true) => return Ok(()),
        Ok(false) => PodResultsError::Killed,
        Err(error) => error.into(),
    };
    match remove_if_exists(dir) {
        Ok(()) => Err(problem),
        Err(source) => {
            Err(PodResultsError::Remove { problem: Box::new(problem), dir: dir.to_owned(), source })
        }
    }
}

fn create_empty(dir: &Path) -> Result<(), JobError> {
    let failed = |source| JobError::Write { dir: dir.to_owned(), source };
    create_private_dir(dir).map_err(failed)?;
    match fs::read_dir(dir).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(JobError::NotEmpty(dir.to_owned())),
    }
}

/// Moves a directory to a path at which the results of an earlier attempt may be.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    remove_if_exists(to)?;
    fs::rename(from, to)
}

fn remove_if_exists(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::archive::PackedRun;

    fn log(files: &[(&str, &[u8])]) -> String {
        let run = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(run.path().join(name), content).unwrap();
        }
        let mut log = Vec::new();
        PackedRun::pack(run.path()).unwrap().write_lines("id", &mut log).unwrap();
        String::from_utf8(log).unwrap()
    }

    #[test]
    fn a_damaged_attempt_leaves_no_files_to_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let partial = dir.path().join(".index-0");
        let damaged = log(&[("a", b"of the first"), ("b-is-a-directory", b"")]);
        // The second file cannot be written, after the first one was.
        fs::create_dir_all(partial.join("b-is-a-directory")).unwrap();
        assert!(unpack_into_new(&damaged, &partial).is_err());
        assert!(!partial.exists());
        unpack_into_new(&log(&[("c", b"of the second")]), &partial).unwrap();
        let names: Vec<_> = fs::read_dir(&partial).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["c"]);
    }
}
