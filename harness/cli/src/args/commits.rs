//! Arguments of a search for a commit.

use std::path::{Component, Path, PathBuf};

use evictlab_report::LATEST_RUN;
use evictlab_tools::git_bisect::{BadIf, Build};

use crate::args::values::option_args;
use crate::failure::Failure;

/// The repository, the build of its commits, and how their verdicts count.
#[derive(clap::Args)]
#[command(next_help_heading = "Search for a commit")]
pub(crate) struct CommitArgs {
    /// Search the commits of this git repository; --good and --bad are revisions. Commits are
    /// checked out in a worktree in the run directory
    #[arg(long = "git", value_name = "DIR", conflicts_with = "kubelets")]
    repository: Option<PathBuf>,
    /// Command that builds a commit, for `sh` at the top of the worktree; a commit for which it
    /// fails is skipped
    #[arg(long, value_name = "COMMAND", default_value = "make WHAT=cmd/kubelet", requires = "repository")]
    build: String,
    /// Kubelet after the build, relative to the worktree
    #[arg(long, value_name = "PATH", default_value = "_output/bin/kubelet", requires = "repository")]
    kubelet_path: PathBuf,
    /// Number of conclusive runs of the case on each commit
    #[arg(long, alias = "tries", value_name = "N", default_value_t = 1, requires = "repository", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Runs that must be bad for a commit to be bad: `any` for a case that never fails on good
    /// commits, `all` for a case that always fails on bad ones
    #[arg(long, value_name = "TRIES", value_enum, default_value_t = BadIfArg::Any, requires = "repository")]
    bad_if: BadIfArg,
    /// Follow only the first parent of a merge: find the merge instead of a commit of its branch
    #[arg(long, requires = "repository")]
    first_parent: bool,
    /// Continue the interrupted search in this run directory, with the options of its command;
    /// --output-dir is ignored
    // No conflict with `--output-dir`: its environment variable is set in every job of Prow.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = LATEST_RUN, requires = "repository")]
    resume: Option<PathBuf>,
}

/// Values of `--bad-if`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum BadIfArg {
    Any,
    All,
}

impl CommitArgs {
    /// Returns the directory of the repository, if commits are searched.
    pub(crate) fn repository(&self) -> Option<&Path> {
        self.repository.as_deref()
    }

    /// Returns the arguments of a search for a commit, except its ends and its run directory.
    pub(crate) fn words(&self) -> Vec<String> {
        let repository = self.repository.as_ref().map(|dir| dir.display().to_string());
        let bad_if = match self.bad_if {
            BadIfArg::Any => "any",
            BadIfArg::All => "all",
        };
        let options = [
            ("--git", repository.unwrap_or_default()),
            ("--build", self.build.clone()),
            ("--kubelet-path", self.kubelet_path.display().to_string()),
            ("--repeat", self.repeat.to_string()),
            ("--bad-if", bad_if.to_owned()),
        ];
        let words = options.into_iter().flat_map(|(name, value)| option_args(name, &value));
        words.chain(self.first_parent.then(|| "--first-parent".to_owned())).collect()
    }

    /// Returns how commits are built.
    ///
    /// # Errors
    /// The path of the kubelet leaves the worktree.
    pub(crate) fn build(&self) -> Result<Build, Failure> {
        let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !self.kubelet_path.components().all(is_inside) {
            return Err(Failure::bad_input(format!(
                "failed to find --kubelet-path {}: it is not in the worktree\nhelp: name the kubelet relative to the top of the checkout, such as _output/bin/kubelet",
                self.kubelet_path.display()
            )));
        }
        Ok(Build { command: self.build.clone(), kubelet: self.kubelet_path.clone() })
    }

    /// Returns the number of conclusive runs on each commit.
    pub(crate) fn repeat(&self) -> u32 {
        self.repeat
    }

    /// Returns which runs must be bad for a commit to be bad.
    pub(crate) fn bad_if(&self) -> BadIf {
        match self.bad_if {
            BadIfArg::Any => BadIf::Any,
            BadIfArg::All => BadIf::All,
        }
    }

    /// Returns whether only the first parent of a merge counts.
    pub(crate) fn first_parent(&self) -> bool {
        self.first_parent
    }

    /// Returns the run directory of the search to continue.
    pub(crate) fn resume(&self) -> Option<&Path> {
        self.resume.as_deref()
    }
}
