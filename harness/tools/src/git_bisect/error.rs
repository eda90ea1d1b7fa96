//! Errors that end a search for a commit without an outcome.

use std::io;
use std::path::PathBuf;

use evictlab_report::ClusterFailure;

use super::cache::CacheError;
use super::repository::GitError;
use super::search_file::SearchFileError;

/// A search for a commit failed.
#[derive(Debug, thiserror::Error)]
pub enum CommitSearchError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The cache of kubelets failed.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The file of the search cannot be used.
    #[error(transparent)]
    File(#[from] SearchFileError),
    /// The build command cannot be started, or its log not be written.
    #[error("failed to run the build of {commit}: {source}")]
    Build {
        /// Short id of the commit.
        commit: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Neither end builds.
    #[error(
        "failed to build {old} and {new}: {reason}\nhelp: check --build and --kubelet-path; the output of the builds is in {}",
        .logs.display()
    )]
    NoEndBuilds {
        /// Short id of the older end.
        old: String,
        /// Short id of the newer end.
        new: String,
        /// Reason of the first build that failed.
        reason: String,
        /// Directory of the logs.
        logs: PathBuf,
    },
    /// The files of an earlier run of a commit cannot be removed.
    #[error("failed to remove {}: {source}", .dir.display())]
    Remove {
        /// The directory.
        dir: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// New clusters failed for two kubelets in a row.
    #[error("failed to create clusters for two kubelets in a row: {0}")]
    Clusters(ClusterFailure),
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl CommitSearchError {
    /// Returns whether another input is the remedy, rather than another machine or cluster.
    pub fn is_input(&self) -> bool {
        match self {
            Self::NoEndBuilds { .. } => true,
            Self::File(error) => error.is_input(),
            _ => false,
        }
    }
}
