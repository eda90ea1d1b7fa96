//! The evidence of a merged run: the files of the runs.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use super::attempts::Attempts;
use super::source::Source;
use crate::confined::{is_dir_below, open_below};
use crate::run_dir::{RunDir, create_private, make_dir};
use crate::sink::ReportError;

/// Depth of directories in that of a case: `try-N`.
const MAX_DEPTH: u32 = 1;

/// Copies the evidence of each attempt to its directory in `run_dir`, over what is there.
pub(super) fn copy_evidence(
    sources: &[Source],
    attempts: &Attempts,
    run_dir: &RunDir,
) -> Result<(), ReportError> {
    for (nth, source) in sources.iter().enumerate() {
        for ended in &source.state.ended {
            let Some(number) = attempts.number(nth, &ended.id) else { continue };
            let from = source.run_dir().case_dir(&ended.id);
            let to = run_dir.case_dir(&crate::CaseId { attempt: number, ..ended.id.clone() });
            if is_dir_below(&source.dir, &from) {
                copy_dir(&source.dir, [&from, &to], MAX_DEPTH)?;
            }
        }
    }
    Ok(())
}

/// Copies the files of a directory in a run. Links are passed over: the run may be untrusted.
fn copy_dir(run: &Path, [from, to]: [&Path; 2], depth: u32) -> Result<(), ReportError> {
    make_dir(to)?;
    let read_error = |source| ReportError::Read { path: from.to_owned(), source };
    let entries: Vec<DirEntry> = fs::read_dir(from).and_then(Iterator::collect).map_err(read_error)?;
    for entry in entries {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(read_error)?;
        if kind.is_dir() && depth > 0 {
            copy_dir(run, [&path, &target], depth - 1)?;
        } else if kind.is_file() {
            copy_file(run, [&path, &target])?;
        }
    }
    Ok(())
}

fn copy_file(run: &Path, [from, to]: [&Path; 2]) -> Result<(), ReportError> {
    let read_error = |source| ReportError::Read { path: from.to_owned(), source };
    let write_error = |source| ReportError::Write { path: to.to_owned(), source };
    let mut file = open_below(run, from).map_err(read_error)?;
    let mut copy = create_private(to).map_err(write_error)?;
    io::copy(&mut file, &mut copy).map(|_| ()).map_err(write_error)
}
