//! Deletion of old run directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Time without a new event after which a run without an end is a dead one.
const MAX_SILENCE: Duration = Duration::from_secs(24 * 3600);

/// Old run directories could not be deleted.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// A directory could not be listed.
    #[error("failed to list {}: {source}", .path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A run directory could not be deleted.
    #[error("failed to delete {}: {source}", .path.display())]
    Delete {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Returns the runs in `results` that are older than the newest `keep`, oldest first. Only
/// directories that [`RunDir::create`](crate::RunDir::create) named are considered, and a run that
/// may still be going on is never returned.
///
/// # Errors
/// The directory exists but cannot be listed.
pub fn old_runs(results: &Path, keep: usize) -> Result<Vec<PathBuf>, RetentionError> {
    let mut runs = runs_by_age(results)?;
    runs.truncate(runs.len().saturating_sub(keep));
    Ok(runs.into_iter().filter(|path| is_over(path)).collect())
}

/// Returns the directories in `results` that [`RunDir::create`](crate::RunDir::create) named,
/// oldest first.
///
/// # Errors
/// The directory exists but cannot be listed.
pub(crate) fn runs_by_age(results: &Path) -> Result<Vec<PathBuf>, RetentionError> {
    let failed = |source| RetentionError::List { path: results.to_owned(), source };
    let entries = match fs::read_dir(results) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(failed)?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let is_dir = entry.file_type().map_err(failed)?.is_dir();
        if let Some(key) = entry.file_name().to_str().and_then(sort_key).filter(|_| is_dir) {
            runs.push((key, entry.path()));
        }
    }
    runs.sort();
    Ok(runs.into_iter().map(|(_, path)| path).collect())
}

/// Deletes a run directory.
///
/// # Errors
/// A file cannot be deleted.
pub fn delete_run(dir: &Path) -> Result<(), RetentionError> {
    fs::remove_dir_all(dir).map_err(|source| RetentionError::Delete { path: dir.to_owned(), source })
}

/// Time and number of a run, from the name of its directory, `2026-11-21T09-30-12Z-2`; `None` for
/// other names.
fn sort_key(name: &str) -> Option<(String, u32)> {
    let (time, rest) = name.split_at_checked("2026-11-21T09-30-12Z".len())?;
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let number = match rest.strip_prefix('-') {
        None if rest.is_empty() => 1,
        number => number?.parse().ok()?,
    };
    (time.chars().map(digits).eq("0000-00-00T00-00-00Z".chars())).then(|| (time.to_owned(), number))
}

/// Returns whether a directory contains a run, or the runs of a command, that ended or was killed.
fn is_over(dir: &Path) -> bool {
    if ["finished.json", "bisect.md", "mutants.json"].iter().any(|end| dir.join(end).exists()) {
        return true;
    }
    // A command of several runs, such as `mutants run`, has no events of its own.
    let events = fs::metadata(dir.join("artifacts/events.jsonl")).or_else(|_| fs::metadata(dir));
    let modified = events.and_then(|events| events.modified());
    modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > MAX_SILENCE))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn returns_old_runs_that_are_over() {
        let results = tempfile::tempdir().unwrap();
        let run = |name: &str, file: &str| {
            let dir = results.path().join(name);
            fs::create_dir_all(dir.join("artifacts")).unwrap();
            File::create(dir.join(file)).unwrap()
        };
        run("2026-11-01T03-00-00Z", "finished.json");
        run("2026-11-02T03-00-00Z", "artifacts/events.jsonl");
        let dead = run("2026-11-03T03-00-00Z", "artifacts/events.jsonl");
        dead.set_modified(SystemTime::now() - 2 * MAX_SILENCE).unwrap();
        run("2026-11-04T03-00-00Z", "notes.txt");
        run("2026-11-05T03-00-00Z-10", "finished.json");
        run("2026-11-05T03-00-00Z-2", "finished.json");
        run("2026-11-05T03-00-00Z", "bisect.md");
        run("2026-11-06T03-00-00Z", "mutants.json");
        for other in ["sample", "2026-11-01", "2026-11-01T03-00-00Z-old"] {
            run(other, "finished.json");
        }
        std::os::unix::fs::symlink("2026-11-01T03-00-00Z", results.path().join("latest")).unwrap();
        let old = |keep| {
            let old = old_runs(results.path(), keep).unwrap();
            let names = old.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(
            old(0),
            [
                "2026-11-01T03-00-00Z",
                "2026-11-03T03-00-00Z",
                "2026-11-05T03-00-00Z",
                "2026-11-05T03-00-00Z-2",
                "2026-11-05T03-00-00Z-10",
                "2026-11-06T03-00-00Z"
            ]
        );
        assert_eq!(old(1).len(), 5);
        assert_eq!(old(7), ["2026-11-01T03-00-00Z"]);
        assert_eq!(old(8), [""; 0]);
        delete_run(&results.path().join("2026-11-01T03-00-00Z")).unwrap();
        assert_eq!(old(6), [""; 0]);
        assert_eq!(old_runs(&results.path().join("missing"), 0).unwrap().len(), 0);
    }
}
