//! Lines on stderr.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Says a line. Where nobody listens any more, it goes on without.
pub fn tell(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}
