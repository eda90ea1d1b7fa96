//! Output to standard output and standard error.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::failure::{Failure, infrastructure};

/// Writes a line to standard output. A closed pipe (`| head`) is not a failure.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(infrastructure(format!("failed to write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error and ignores errors: a closed terminal must not stop a run.
pub(crate) fn print_stderr(text: impl Display) {
    let _ignored = writeln!(io::stderr().lock(), "{text}");
}
