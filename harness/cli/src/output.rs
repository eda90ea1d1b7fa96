//! Output to standard output and standard error.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use evictlab_report::words::{visible, without_workflow_commands};
use evictlab_report::{InterruptStage, exit_code, write_until_interrupt};

use crate::failure::{Failure, infrastructure};

/// Writes a line to standard output, with visible control characters. A closed pipe (`| head`) is
/// not a failure.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let text = text.to_string();
    print_coloured(without_workflow_commands(&visible(&text)))
}

/// Writes a document as indented JSON to standard output, as [`print()`] does.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(document).map_err(infrastructure)?)
}

/// Writer of JSON, which shows control characters as [`print_json`] does. Text is not split within a
/// character: serde_json writes whole pieces of strings.
pub(crate) struct VisibleWriter<W>(pub W);

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(visible(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the number of columns of the terminal that standard output is; `None` for a pipe or a
/// file, also if standard error is a terminal.
pub(crate) fn stdout_width() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
}

/// Writes a line that may contain colours to standard output.
pub(crate) fn print_coloured(text: impl Display) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(infrastructure(format!("failed to write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line as [`print()`] does; after an interrupt, without a reader that does not read.
pub(crate) fn print_until_interrupt(text: impl Display, interrupts: &InterruptStage) -> Result<(), Failure> {
    let line = format!("{text}\n");
    let line = visible(&line);
    match write_until_interrupt(&without_workflow_commands(&line), io::stdout(), interrupts) {
        Err(error) if interrupts.is_interrupted() => Err(Failure::new(error, exit_code::INTERRUPTED)),
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(infrastructure(format!("failed to write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a document as [`print_json`] does; after an interrupt, without a reader that does not
/// read.
pub(crate) fn print_json_until_interrupt(
    document: &impl Serialize,
    interrupts: &InterruptStage,
) -> Result<(), Failure> {
    print_until_interrupt(serde_json::to_string_pretty(document).map_err(infrastructure)?, interrupts)
}

/// Writes a line to standard error, with visible control characters. Ignores errors: a closed
/// terminal must not stop a run.
pub(crate) fn print_stderr(text: impl Display) {
    let text = text.to_string();
    let _ignored = writeln!(io::stderr().lock(), "{}", without_workflow_commands(&visible(&text)));
}

/// Writes a warning to standard error, as [`print_stderr`] does.
pub(crate) fn print_warning(text: &str) {
    print_stderr(format!("warning: {text}"));
}
