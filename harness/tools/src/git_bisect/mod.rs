//! Search for the commit that changed the verdict on a case: git chooses the commits, each is built
//! and its kubelet judged.

mod build;
mod cache;
mod culprit;
mod render;
mod repository;
mod result;
mod search;
mod search_file;
mod tries;
mod worktree;

pub use build::{Build, BuildLog, BuildOutcome};
pub use cache::{CacheError, KubeletCache};
pub use culprit::Culprit;
pub use render::{progress, render};
pub use repository::{Commit, GitError, Repository, short};
pub use result::CommitBisectResult;
pub use search::{CommitSearch, SearchOutcome, Step, steps};
pub use search_file::{CommitResult, KeptCluster, SearchFile, SearchFileError, SearchOptions, TestedCommit};
pub use tries::{BadIf, Confidence, Tries};
pub use worktree::Worktree;
