//! Kubelets of commits: from the cache, or built in the worktree of the search.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::cache::KubeletCache;
use super::commit_build::{Build, BuildLog, BuildOutcome};
use super::error::CommitSearchError;
use super::repository::short;
use super::worktree::Worktree;

/// Builds the kubelets of commits.
#[derive(Clone, Debug)]
pub struct CommitBuilder {
    /// Build command.
    pub build: Build,
    /// Kubelets that were built before.
    pub cache: KubeletCache,
    /// The checkout for the builds.
    pub worktree: Worktree,
    /// Directory of the logs.
    pub logs: PathBuf,
    /// Ends builds.
    pub stop: CancellationToken,
}

impl CommitBuilder {
    /// Returns the kubelet of a commit that was built before.
    pub(super) fn cached(&self, commit: &str) -> Option<PathBuf> {
        self.cache.get(commit, &self.build)
    }

    /// Returns the path of the log of a build.
    pub(super) fn log(&self, commit: &str) -> PathBuf {
        self.logs.join(format!("{}.log", short(commit)))
    }

    /// Builds a commit, and stores its kubelet in the cache.
    ///
    /// # Errors
    /// git fails, the build cannot be started, or the kubelet cannot be stored.
    pub(super) async fn run(&self, commit: &str) -> Result<BuildOutcome, CommitSearchError> {
        let failed = |source| CommitSearchError::Build { commit: short(commit).to_owned(), source };
        fs::create_dir_all(&self.logs).map_err(failed)?;
        if self.logs.is_symlink() {
            let problem = format!("{} is a symbolic link", self.logs.display());
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, problem)));
        }
        let (builder, id, log) = (self.clone(), commit.to_owned(), self.log(commit));
        let built = tokio::task::spawn_blocking(move || builder.run_blocking(&id, &log));
        built.await.map_err(|panic| failed(io::Error::other(panic)))?
    }

    fn run_blocking(&self, commit: &str, log: &Path) -> Result<BuildOutcome, CommitSearchError> {
        let failed = |source| CommitSearchError::Build { commit: short(commit).to_owned(), source };
        let Some(log) = BuildLog::open(log, &self.stop).map_err(failed)? else {
            return Ok(BuildOutcome::Interrupted);
        };
        self.worktree.check_out(commit)?;
        Ok(match self.build.run(self.worktree.path(), log, &self.stop).map_err(failed)? {
            BuildOutcome::Built(kubelet) => {
                BuildOutcome::Built(self.cache.put(commit, &self.build, &kubelet)?)
            }
            other => other,
        })
    }
}
