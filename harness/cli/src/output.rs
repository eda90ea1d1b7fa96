//! Output to standard output.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use evictlab_report::text::{visible, without_workflow_commands, wrap_markdown};
use evictlab_report::{
    InterruptStage, Style, TerminalCaps, color_markdown, exit_code, write_until_interrupt,
};

use crate::failure::Failure;
use crate::messages::color_choice;

/// Returns whether standard output is colored.
pub(crate) fn is_stdout_colored() -> bool {
    TerminalCaps::of_stdout(color_choice()).color
}

/// Writes a line to standard output, with visible control characters. A closed pipe (`| head`) is
/// not a failure.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let text = text.to_string();
    print_colored(without_workflow_commands(&visible(&text)))
}

/// Writes a table to standard output, as [`print()`] does, with a bold header: its first line.
pub(crate) fn print_table(table: &str) -> Result<(), Failure> {
    let table = visible(table);
    let (header, rows) = table.split_once('\n').unwrap_or((&table, ""));
    let header = Style::Bold.on(header, is_stdout_colored());
    print_colored(without_workflow_commands(format!("{header}\n{rows}").trim_end()))
}

/// Writes Markdown to standard output, as [`print()`] does, with colored headings, verdicts and
/// diffs.
pub(crate) fn print_markdown(text: &str) -> Result<(), Failure> {
    print_colored(color_markdown(&wrapped(&visible(text)), is_stdout_colored()).trim_end())
}

/// Writes a document as indented JSON to standard output, as [`print()`] does.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(document).map_err(Failure::infrastructure)?)
}

/// Writer of JSON, which shows control characters as [`print_json`] does. Text is not split within
/// a character: serde_json writes whole pieces of strings.
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

/// Writes a line that may contain colors to standard output.
pub(crate) fn print_colored(text: impl Display) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::infrastructure(format!("failed to write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Returns Markdown with lines that fit into a terminal; unchanged for a pipe or a file.
fn wrapped(text: &str) -> Cow<'_, str> {
    match stdout_width() {
        Some(width) => wrap_markdown(text, usize::from(width)).into(),
        None => text.into(),
    }
}

/// Writes Markdown as [`print()`] does; after an interrupt, without a reader that does not read.
pub(crate) fn print_until_interrupt(text: impl Display, interrupts: &InterruptStage) -> Result<(), Failure> {
    write_until_interrupt_or_fail(&wrapped(&text.to_string()), interrupts)
}

fn write_until_interrupt_or_fail(text: &str, interrupts: &InterruptStage) -> Result<(), Failure> {
    let line = format!("{text}\n");
    let line = visible(&line);
    match write_until_interrupt(&without_workflow_commands(&line), io::stdout(), interrupts) {
        Err(error) if interrupts.is_interrupted() => Err(Failure::new(error, exit_code::INTERRUPTED)),
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::infrastructure(format!("failed to write to standard output: {error}")))
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
    let document = serde_json::to_string_pretty(document).map_err(Failure::infrastructure)?;
    write_until_interrupt_or_fail(&document, interrupts)
}
