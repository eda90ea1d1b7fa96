//! The checkout in which commits are built: a worktree beside that of the user.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{GitError, Repository};

/// A worktree of a repository, in a directory of its own. The files of the user stay as they are.
#[derive(Clone, Debug)]
pub struct Worktree {
    repository: Repository,
    path: PathBuf,
}

impl Worktree {
    /// Returns the worktree at an absolute path, which need not exist.
    pub fn new(repository: Repository, path: PathBuf) -> Self {
        Self { repository, path }
    }

    /// Path of the worktree.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks out a commit. Files that are not in the repository, such as those of a build, stay.
    /// A worktree that git cannot use, such as one of a killed process, is created again.
    ///
    /// # Errors
    /// git fails.
    pub fn check_out(&self, commit: &str) -> Result<(), GitError> {
        let in_worktree = Repository::at(&self.path);
        if self.path.join(".git").is_file()
            && in_worktree.read(&["checkout", "--quiet", "--force", "--detach", commit]).is_ok()
        {
            return Ok(());
        }
        self.remove()?;
        let path = self.path.to_string_lossy();
        self.repository.read(&["worktree", "add", "--quiet", "--force", "--detach", &path, commit]).map(drop)
    }

    /// Removes the worktree, with the files of builds. Other worktrees of the repository stay.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(&self) -> Result<(), GitError> {
        let path = self.path.to_string_lossy();
        let arguments = ["worktree", "remove", "--force", "--force", &path];
        let removed = self.repository.read(&arguments);
        if !self.path.exists() {
            // git did not know the worktree, or has removed it.
            return Ok(());
        }
        fs::remove_dir_all(&self.path).map_err(|source| match removed {
            Err(error) => error,
            Ok(_) => GitError::Run { command: arguments.join(" "), source },
        })
    }
}
