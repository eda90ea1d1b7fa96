//! Errors of operations on a Job.

use std::path::PathBuf;

use evictlab_cluster::wait::StalledError;
use evictlab_cluster::{ExistingError, JobName, api_error_message};

/// An operation on a Job failed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The Job does not exist.
    #[error(
        "failed to find job {0}\nhelp: name another one, and its --namespace; `evictlab job manifest --apply` creates a job"
    )]
    NoJob(JobName),
    /// The Job was not created by evictlab.
    #[error(
        "failed to read job {0}: evictlab did not create it\nhelp: name another one, and its --namespace"
    )]
    Foreign(JobName),
    /// An object exists.
    #[error("failed to create {object}: it already exists\nhelp: remove the job with `evictlab job delete {name} --namespace {namespace}`, or use another --name", name = job.name, namespace = job.namespace)]
    Exists {
        /// Kind and name of the object.
        object: String,
        /// The Job.
        job: JobName,
    },
    /// The API server does not answer, or refuses a request.
    #[error("failed to {operation}: {}", api_error_message(source))]
    Api {
        /// Verb phrase of the request.
        operation: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// The cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] ExistingError),
    /// The directory for the results contains files.
    #[error(
        "failed to write results to {0}: the directory is not empty\nhelp: name a directory that does not exist"
    )]
    NotEmpty(PathBuf),
    /// A file cannot be read or written.
    #[error("failed to write results to {dir}: {source}")]
    Write {
        /// Directory of the results.
        dir: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The pods of a deleted Job remain.
    #[error("failed to wait for the end of job {job}: {stalled}")]
    Remains {
        /// The Job.
        job: JobName,
        /// Last observation.
        #[source]
        stalled: StalledError,
    },
}

impl JobError {
    /// Error of a request.
    pub(super) fn api(operation: impl Into<String>, source: kube::Error) -> Self {
        Self::Api { operation: operation.into(), source: Box::new(source) }
    }

    /// Returns whether the command line is wrong, not the cluster.
    pub fn is_input(&self) -> bool {
        match self {
            Self::NoJob(_) | Self::Foreign(_) | Self::Exists { .. } | Self::NotEmpty(_) => true,
            Self::Cluster(error) => error.is_input(),
            _ => false,
        }
    }
}
