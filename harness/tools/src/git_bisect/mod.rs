//! Search for the commit that changed the verdict on a case: git chooses the commits, each is built
//! and its kubelet judged.

mod cache;
mod commit_build;
mod commit_builder;
mod commit_worker;
mod culprit;
mod error;
mod render;
mod repository;
mod result;
mod search;
mod search_file;
mod search_run;
mod tries;
mod worktree;

pub use cache::{CacheError, KubeletCache};
pub use commit_build::Build;
pub use commit_builder::CommitBuilder;
pub use commit_worker::{CommitBackend, CommitWorker};
pub use culprit::Culprit;
pub use error::CommitSearchError;
pub use render::render;
pub use repository::{GitError, Repository, RevisionNames, short};
pub use result::CommitBisectResult;
pub use search::{CommitSearch, CommitSearchOutcome};
pub use search_file::{CommitResult, KeptCluster, SearchFile, SearchFileError, SearchOptions, TestedCommit};
pub use search_run::CommitSearchRun;
pub use tries::{BadIf, Confidence, Tries};
pub use worktree::Worktree;
