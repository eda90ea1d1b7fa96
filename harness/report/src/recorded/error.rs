//! Errors of reading a run directory.

use std::io;
use std::path::PathBuf;

use crate::run_dir::LATEST_RUN;

/// Path of the events in a run directory.
pub(super) const EVENTS_FILE: &str = "artifacts/events.jsonl";

/// A run directory could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordedRunError {
    /// The directory does not contain a run.
    #[error("failed to read run {}: {EVENTS_FILE} not found\nhelp: {}", .dir.display(), where_runs_are(.runs))]
    NoRun {
        /// The directory.
        dir: PathBuf,
        /// The runs that it contains, such as those of a bisection.
        runs: Vec<PathBuf>,
    },
    /// The process was killed before it wrote an event.
    #[error("failed to read {}: it contains no events, because the run was killed before it started\nhelp: name the directory of another run", .0.display())]
    Empty(PathBuf),
    /// A file could not be read.
    #[error("failed to read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has another format than evictlab writes.
    #[error("failed to parse {}:{line}: {reason}\nhelp: the file was modified, or written by another version of evictlab", .path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
}

fn where_runs_are(runs: &[PathBuf]) -> String {
    match runs {
        [] => format!("name the directory of a run, such as {LATEST_RUN}"),
        runs => {
            let runs: Vec<String> = runs.iter().map(|run| run.display().to_string()).collect();
            format!("name one of the runs that the directory contains: {}", runs.join(", "))
        }
    }
}
