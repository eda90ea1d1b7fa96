//! Consumption of log space: lines on stdout.

use std::io::{self, Write};

use evictlab_rules::quantity::KIB;

use super::random::RandomBytes;

/// The length of a line with its newline, in bytes.
const LINE: usize = KIB as usize;

/// Log lines on stdout.
pub(super) struct Logs(RandomBytes);

impl Logs {
    pub(super) fn new() -> Self {
        Self(RandomBytes::new())
    }

    pub(super) fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
        let mut line = [b'\n'; LINE];
        let mut left = amount;
        let mut stdout = io::stdout().lock();
        while left > 0 {
            let len = LINE.min(usize::try_from(left).unwrap_or(LINE));
            self.0.fill_letters(&mut line[..len - 1]);
            line[len - 1] = b'\n';
            stdout.write_all(&line[..len])?;
            left -= len as u64;
            *consumed += len as u64;
        }
        stdout.flush()
    }
}
