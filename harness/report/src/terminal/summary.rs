//! The summary of a run, without a line for each event.

use std::io::{self, Write};

use super::style::color_markdown;
use crate::output_options::OutputOptions;
use crate::run_dir::RunDir;
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use crate::summary::{LOG_COLUMNS, run_summary};
use crate::text::wrap_markdown;

/// Renders the summary of a run for a terminal, with lines of at most `columns`.
pub(super) fn wrapped_summary(
    run: &RunState,
    run_dir: Option<&RunDir>,
    options: OutputOptions,
    columns: usize,
) -> String {
    let summary = run_summary(run, run_dir, options, columns);
    color_markdown(&wrap_markdown(summary.trim_start_matches('\n'), columns), options.color)
}

/// Writes the summary of a run, after a blank line if `out` `has_lines`, and flushes `out`.
pub(super) fn write_summary(
    out: &mut impl Write,
    run: &RunState,
    run_dir: Option<&RunDir>,
    options: OutputOptions,
    has_lines: bool,
) -> io::Result<()> {
    let separator = if has_lines { "\n" } else { "" };
    let summary = run_summary(run, run_dir, options, LOG_COLUMNS);
    let summary = color_markdown(summary.trim_start_matches('\n'), options.color);
    write!(out, "{separator}{summary}")?;
    out.flush()
}

/// Writes the summary at the end of the run.
#[derive(Debug)]
pub struct RunSummary<W> {
    out: W,
    options: OutputOptions,
    run_dir: RunDir,
}

impl<W: Write> RunSummary<W> {
    /// Writes to `out`, with the path of `run_dir`.
    pub fn new(out: W, options: OutputOptions, run_dir: RunDir) -> Self {
        Self { out, options, run_dir }
    }
}

impl<W: Write + Send> Report for RunSummary<W> {
    fn name(&self) -> &'static str {
        "summary"
    }

    fn finish(mut self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        Ok(write_summary(&mut self.out, run, Some(&self.run_dir), self.options, false)?)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::take;

    use super::*;
    use crate::fixtures;
    use crate::output_options::Verbosity;
    use crate::terminal::Tally;

    /// Loses what is not flushed.
    #[derive(Default)]
    struct Buffer<'a> {
        unflushed: Vec<u8>,
        out: Option<&'a mut Vec<u8>>,
    }

    impl Write for Buffer<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.unflushed.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            let bytes = take(&mut self.unflushed);
            self.out.as_mut().unwrap().extend(bytes);
            Ok(())
        }
    }

    #[test]
    fn a_quiet_summary_has_no_superfluous_blank_lines_and_is_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = || RunDir::at(dir.path()).unwrap();
        let quiet = fixtures::plain_output(Verbosity::Quiet);
        let [mut summary, mut tally] = [vec![], vec![]];
        let reports: [Box<dyn Report + '_>; 2] = [
            Box::new(RunSummary::new(
                Buffer { out: Some(&mut summary), ..Buffer::default() },
                quiet,
                run_dir(),
            )),
            Box::new(Tally::new(Buffer { out: Some(&mut tally), ..Buffer::default() }, quiet, run_dir())),
        ];
        for mut report in reports {
            let state = fixtures::deliver(&mut *report, &fixtures::full_run());
            report.finish(&state).unwrap();
        }
        let [summary, tally] = [summary, tally].map(|text| String::from_utf8(text).unwrap());
        assert!(summary.starts_with("### "), "{summary}");
        assert!(tally.ends_with(&format!("\n\n{summary}")), "{tally}");
        assert!(!tally.contains("\n\n\n"), "{tally}");
    }
}
