//! Lines of a log.

use std::io::{self, Write};

use super::noise::Noise;
use super::take::Taker;

/// A line with its end, in bytes.
const LINE: usize = 1 << 10;

/// Lines on stdout.
pub struct Logs(Noise);

impl Logs {
    pub fn new() -> Self {
        Self(Noise::new())
    }
}

impl Taker for Logs {
    fn take(&mut self, amount: u64, taken: &mut u64) -> io::Result<()> {
        let mut line = [b'\n'; LINE];
        let mut left = amount;
        let mut out = io::stdout().lock();
        while left > 0 {
            let len = LINE.min(usize::try_from(left).unwrap_or(LINE));
            self.0.letters(&mut line[..len - 1]);
            line[len - 1] = b'\n';
            out.write_all(&line[..len])?;
            left -= len as u64;
            *taken += len as u64;
        }
        out.flush()
    }

    fn give_back(self: Box<Self>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
