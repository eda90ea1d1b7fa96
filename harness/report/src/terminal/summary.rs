//! The summary of a run, without a line for each event.

use std::io::Write;

use super::style::colour_markdown;
use crate::output_options::OutputOptions;
use crate::run_dir::RunDir;
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use crate::summary::{LOG_COLUMNS, run_summary};

/// Writes the summary at the end of the run.
#[derive(Debug)]
pub struct Summary<W> {
    out: W,
    options: OutputOptions,
    run_dir: RunDir,
}

impl<W: Write> Summary<W> {
    /// Writes to `out`, with the path of `run_dir`.
    pub fn new(out: W, options: OutputOptions, run_dir: RunDir) -> Self {
        Self { out, options, run_dir }
    }
}

impl<W: Write + Send> Report for Summary<W> {
    fn name(&self) -> &'static str {
        "summary"
    }

    fn finish(mut self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let OutputOptions { verbosity, colour, .. } = self.options;
        let summary = run_summary(run, Some(&self.run_dir), verbosity, LOG_COLUMNS);
        Ok(write!(self.out, "{}", colour_markdown(&summary, colour))?)
    }
}
