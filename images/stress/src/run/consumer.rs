//! The operations that all resources share.

use std::io;

/// A resource that can be consumed.
pub trait Consumer {
    /// Consumes an amount and adds it to `consumed`; on an error, the part of it that succeeded.
    fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()>;

    /// Releases everything.
    fn release(self: Box<Self>) -> io::Result<()>;
}
