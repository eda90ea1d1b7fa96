//! Writing to standard output.

use std::io::{self, ErrorKind, Write};

use evictlab_runner::report::exit_code;

use crate::failure::Failure;

/// Writes a text and a line end. A reader that has seen enough (`| head`) is no failure.
pub fn print(text: impl std::fmt::Display) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output cannot be written: {why}"), exit_code::INFRASTRUCTURE))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error, for a person who may have gone: a closed terminal is no reason to leave work half done.
pub fn tell(text: impl std::fmt::Display) {
    let _unheard = writeln!(io::stderr().lock(), "{text}");
}

/// `1 case`, `2 cases`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
