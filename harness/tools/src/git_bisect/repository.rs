//! A git repository and its commits, by the command `git`.

use std::collections::HashSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use duct::Expression;

/// Variables that name another repository than the current directory's. git sets them for hooks.
pub(super) const REPOSITORY_VARIABLES: [&str; 6] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"];

/// A repository could not be read, or its worktree not be changed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git is not installed.
    #[error("failed to run git: it is not installed\nhelp: install git")]
    Missing,
    /// git could not be run.
    #[error("failed to run `git {command}`: {source}")]
    Run {
        /// Arguments of git.
        command: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// git failed.
    #[error("failed to run `git {command}`: {stderr}")]
    Failed {
        /// Arguments of git.
        command: String,
        /// Standard error of git.
        stderr: String,
    },
    /// The directory is not in a repository.
    #[error("failed to open git repository {dir}: {problem}\nhelp: name a checkout with --git")]
    NoRepository {
        /// The directory.
        dir: PathBuf,
        /// Message of git.
        problem: String,
    },
    /// A revision does not exist.
    #[error(
        "failed to find revision {revision} in {dir}\nhelp: name a commit, a tag or a branch; fetch missing ones with `git fetch --tags`"
    )]
    UnknownRevision {
        /// The revision.
        revision: String,
        /// Directory of the repository.
        dir: PathBuf,
    },
    /// No commit is an ancestor of the other one.
    #[error("failed to search between {good} and {bad}: neither is an ancestor of the other\nhelp: {help}")]
    Unrelated {
        /// The good revision.
        good: String,
        /// The bad revision.
        bad: String,
        /// A remedy.
        help: String,
    },
}

/// A commit, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Full id.
    pub id: String,
    /// Name of the author.
    pub author: String,
    /// Date of the author, `2026-11-25T07:00:00+01:00`.
    pub date: String,
    /// First line of the message.
    pub subject: String,
    /// The message.
    pub message: String,
}

/// Returns the first characters of a commit id.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// A git repository.
#[derive(Clone, Debug)]
pub struct Repository {
    dir: PathBuf,
}

/// Names of the good and the bad revision, as the user stated them.
#[derive(Clone, Copy, Debug)]
pub struct RevisionNames<'a> {
    /// The good revision.
    pub good: &'a str,
    /// The bad revision.
    pub bad: &'a str,
}

impl Repository {
    /// Opens the repository of a directory.
    ///
    /// # Errors
    /// git is not installed, or the directory is not in a repository.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        let given = Self { dir: dir.to_owned() };
        let no_repository = |problem| GitError::NoRepository { dir: dir.to_owned(), problem };
        if !dir.is_dir() {
            return Err(no_repository("it is not a directory".to_owned()));
        }
        match given.read(&["rev-parse", "--path-format=absolute", "--git-common-dir"]) {
            Ok(common) => Ok(Self { dir: common.into() }),
            Err(GitError::Failed { stderr, .. }) => Err(no_repository(stderr)),
            Err(error) => Err(error),
        }
    }

    /// The git directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the id of the commit that a revision names.
    ///
    /// # Errors
    /// The revision does not exist.
    pub fn resolve(&self, revision: &str) -> Result<String, GitError> {
        let commit = format!("{revision}^{{commit}}");
        match self.read(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]) {
            Err(GitError::Failed { .. }) => {
                Err(GitError::UnknownRevision { revision: revision.to_owned(), dir: self.dir.clone() })
            }
            resolved => resolved,
        }
    }

    /// Returns whether a commit is the other one or an ancestor of it.
    pub fn is_ancestor(&self, ancestor: &str, descendant: &str) -> Result<bool, GitError> {
        let arguments = ["merge-base", "--is-ancestor", ancestor, descendant];
        let output = self.run(&arguments)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(failed(&arguments, &output)),
        }
    }

    /// Returns the error for two commits neither of which is an ancestor of the other one.
    pub fn unrelated(&self, RevisionNames { good, bad }: RevisionNames<'_>) -> GitError {
        let is_shallow =
            self.read(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true");
        let base = self.read(&["merge-base", good, bad]).ok().filter(|base| !base.is_empty());
        let help = match base {
            _ if is_shallow => {
                "the clone is shallow: fetch its history with `git fetch --unshallow`".to_owned()
            }
            Some(base) => format!(
                "search from the commit where their branches parted: --good {}, or --bad, whichever it is",
                short(&base)
            ),
            None => "name two commits of one history".to_owned(),
        };
        GitError::Unrelated { good: good.to_owned(), bad: bad.to_owned(), help }
    }

    /// Returns the commits that are in the history of `newest` and not in that of the `excluded`
    /// ones, except `newest` itself, the best one to test first: it has about as many ancestors
    /// among them as others (`git rev-list --bisect-all`).
    pub fn candidates(
        &self,
        newest: &str,
        excluded: &[&str],
        first_parent: bool,
    ) -> Result<Vec<String>, GitError> {
        let mut arguments = vec!["rev-list", "--bisect-all"];
        arguments.extend(first_parent.then_some("--first-parent"));
        let excluded: Vec<String> = excluded.iter().map(|commit| format!("^{commit}")).collect();
        arguments.extend(["--end-of-options", newest]);
        arguments.extend(excluded.iter().map(String::as_str));
        let listed = self.read(&arguments)?;
        let ids = listed.lines().filter_map(|line| line.split_whitespace().next());
        Ok(ids.filter(|id| *id != newest).map(str::to_owned).collect())
    }

    /// Reads a commit.
    pub fn commit(&self, id: &str) -> Result<Commit, GitError> {
        let format = "--format=%H%x00%an%x00%aI%x00%s%x00%B";
        let text = self.read(&["show", "--no-patch", format, "--end-of-options", id])?;
        let mut fields = text.splitn(5, '\0').map(|field| field.trim_end().to_owned());
        let mut next = || fields.next().unwrap_or_default();
        Ok(Commit { id: next(), author: next(), date: next(), subject: next(), message: next() })
    }

    /// Returns the merge that brought a commit into the first-parent history of `newest`; `None` if
    /// the commit is part of it.
    pub fn merge_of(&self, commit: &str, newest: &str) -> Result<Option<Commit>, GitError> {
        let range = format!("{commit}..{newest}");
        let descendants = self.read(&["rev-list", "--ancestry-path", &range])?;
        let descendants: HashSet<&str> = descendants.lines().collect();
        let main = self.read(&["rev-list", "--first-parent", &range])?;
        let Some(oldest) = main.lines().rfind(|id| descendants.contains(id)) else { return Ok(None) };
        let is_on_main = self.read(&["rev-parse", &format!("{oldest}^1")])? == commit;
        if is_on_main { Ok(None) } else { self.commit(oldest).map(Some) }
    }

    /// Returns the URL of the remote `upstream`, else of `origin`: the clone of a contributor has
    /// its fork as `origin`.
    pub fn remote(&self) -> Option<String> {
        ["upstream", "origin"].iter().find_map(|name| self.read(&["remote", "get-url", name]).ok())
    }

    /// Runs git and returns its trimmed standard output.
    pub(super) fn read(&self, arguments: &[&str]) -> Result<String, GitError> {
        let output = self.run(arguments)?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
        } else {
            Err(failed(arguments, &output))
        }
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, GitError> {
        // Without the hooks of the user, which may do anything after a checkout.
        let options = ["-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"];
        let arguments_of_git = options.iter().chain(arguments);
        let command = in_directory(duct::cmd("git", arguments_of_git), &self.dir).env("LC_ALL", "C");
        command.stdin_null().stdout_capture().stderr_capture().unchecked().run().map_err(
            |source| match source.kind() {
                io::ErrorKind::NotFound => GitError::Missing,
                _ => GitError::Run { command: arguments.join(" "), source },
            },
        )
    }

    /// The same repository, seen from a worktree.
    pub(super) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }
}

/// Lets a command run in a directory, without the repository of a hook that started evictlab, and
/// in its own process group, so that Ctrl-C in a terminal only reaches evictlab.
pub(super) fn in_directory(command: Expression, dir: &Path) -> Expression {
    let command = command.dir(dir).env("GIT_TERMINAL_PROMPT", "0").before_spawn(|command| {
        command.process_group(0);
        Ok(())
    });
    REPOSITORY_VARIABLES.iter().fold(command, |command, name| command.env_remove(name))
}

fn failed(arguments: &[&str], output: &Output) -> GitError {
    let stderr = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    GitError::Failed { command: arguments.join(" "), stderr }
}
