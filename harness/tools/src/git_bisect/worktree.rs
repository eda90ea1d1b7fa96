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
        let arguments = ["checkout", "--quiet", "--force", "--detach", "--end-of-options", commit];
        if self.is_own() && in_worktree.read(&arguments).is_ok() {
            return Ok(());
        }
        self.remove()?;
        let path = self.path.to_string_lossy();
        self.repository.read(&["worktree", "add", "--quiet", "--force", "--detach", &path, commit]).map(drop)
    }

    /// Returns whether the directory is a worktree that git created here for the repository. The
    /// run directory may be another user's, with a link, or with a repository whose configuration
    /// names commands.
    fn is_own(&self) -> bool {
        let link = self.path.join(".git");
        if self.path.is_symlink() || !link.symlink_metadata().is_ok_and(|file| file.is_file()) {
            return false;
        }
        let arguments = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir"];
        let Ok(answer) = Repository::at(&self.path).read(&arguments) else { return false };
        let Some((common, git_dir)) = answer.split_once('\n') else { return false };
        // git's own file names the place of the worktree.
        let place = fs::read_to_string(Path::new(git_dir).join("gitdir")).unwrap_or_default();
        is_same_path(Path::new(common), self.repository.path())
            && is_same_path(&Path::new(git_dir).join(place.trim_end()), &link)
    }

    /// Removes the worktree, with the files of builds. Other worktrees of the repository stay.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(&self) -> Result<(), GitError> {
        let path = self.path.to_string_lossy();
        let arguments = ["worktree", "remove", "--force", "--force", &path];
        // git would remove the worktree to which a link leads.
        let removed =
            if self.path.is_symlink() { Ok(String::new()) } else { self.repository.read(&arguments) };
        if self.path.symlink_metadata().is_err() {
            // git did not know the worktree, or has removed it.
            return Ok(());
        }
        fs::remove_dir_all(&self.path).map_err(|source| match removed {
            Err(error) => error,
            Ok(_) => GitError::Run { command: arguments.join(" "), source },
        })
    }
}

/// Returns whether two paths lead to the same existing file.
fn is_same_path(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
