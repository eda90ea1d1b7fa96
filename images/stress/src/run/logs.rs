//! Log lines.

use std::io::{self, Write};

use super::consumer::Consumer;
use super::random::RandomBytes;

/// The length of a line with its newline, in bytes.
const LINE: usize = 1 << 10;

/// Log lines on stdout.
pub struct Logs(RandomBytes);

impl Logs {
    pub fn new() -> Self {
        Self(RandomBytes::new())
    }
}

impl Consumer for Logs {
    fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
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

    fn release(self: Box<Self>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
