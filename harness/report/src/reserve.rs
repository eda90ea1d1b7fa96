//! Disk space that is kept for the last files of a run.

use std::fs;
use std::io;
use std::path::PathBuf;

use evictlab_rules::quantity::MIB;

use crate::run_dir::{RunDir, write_file};
use crate::run_event::{RunEvent, RunEventKind};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};

/// Size of the reserve in bytes. JUnit and the summary of the whole catalogue on ten kubelets need
/// 2 MiB.
const RESERVE: usize = 4 * MIB as usize;

/// Occupies disk space during a run, so that the reports after this one can be completed on a disk
/// that became full, as by a case or another program.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Occupies the space in `artifacts`.
    ///
    /// # Errors
    /// The disk has no room for it.
    pub(crate) fn occupy(run_dir: &RunDir) -> Result<Self, ReportError> {
        let path = run_dir.artifacts().join(".reserve");
        // A file system may compress zeros away.
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let bytes: Vec<u8> = std::iter::repeat_with(&mut noise).take(RESERVE).collect();
        write_file(&path, &bytes)?;
        Ok(Self { path })
    }
}

impl Report for Reserve {
    fn name(&self) -> &'static str {
        "reserve"
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        if !matches!(event.kind, RunEventKind::RunEnded { .. }) {
            return Ok(());
        }
        match fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(ReportError::Write { path: self.path.clone(), source })
            }
            _ => Ok(()),
        }
    }
}
