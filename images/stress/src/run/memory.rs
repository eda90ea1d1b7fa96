//! Consumption of anonymous memory.

use std::io;

use super::random::{BLOCK, RandomBytes};

/// Anonymous memory filled with random bytes. The kernel allocates no pages for memory that is only
/// reserved.
pub(super) struct Memory {
    random: RandomBytes,
    block: Vec<u8>,
    chunks: Vec<Vec<u8>>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { random: RandomBytes::new(), block: vec![0; BLOCK], chunks: Vec::new() }
    }

    pub(super) fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let amount = usize::try_from(amount).map_err(|_| out_of_memory())?;
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(amount).map_err(|_| out_of_memory())?;
        while chunk.len() < amount {
            let part = &mut self.block[..BLOCK.min(amount - chunk.len())];
            self.random.fill(part);
            chunk.extend_from_slice(part);
        }
        *consumed += amount as u64;
        self.chunks.push(chunk);
        Ok(())
    }
}
