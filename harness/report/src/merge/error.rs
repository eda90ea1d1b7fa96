//! Errors of a merge of runs.

use std::fmt::Write;
use std::path::PathBuf;

use crate::recorded::RecordedRunError;

/// Runs that cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A run could not be read.
    #[error(transparent)]
    Read(#[from] RecordedRunError),
    /// No run was named.
    #[error("failed to merge runs: no run is named\nhelp: name run directories")]
    Empty,
    /// Verdicts of the runs cannot be compared.
    #[error("failed to merge runs of a different {property}: {}\nhelp: merge them separately, and compare the results with `evictlab report --compare`", list(.runs))]
    Different {
        /// The property: `backend`, `model`.
        property: &'static str,
        /// Directory and value of two runs that differ.
        runs: Vec<(PathBuf, String)>,
    },
}

fn list(runs: &[(PathBuf, String)]) -> String {
    let mut text = String::new();
    for (dir, value) in runs {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{}: {value}", dir.display());
    }
    text
}
