//! Anonymous memory.

use std::io;

use super::noise::{BLOCK, Noise};
use super::take::Taker;

/// Memory that was written to: what is only reserved takes nothing.
pub struct Memory {
    noise: Noise,
    block: Vec<u8>,
    chunks: Vec<Vec<u8>>,
}

impl Memory {
    pub fn new() -> Self {
        Self { noise: Noise::new(), block: vec![0; BLOCK], chunks: Vec::new() }
    }
}

impl Taker for Memory {
    fn take(&mut self, amount: u64, taken: &mut u64) -> io::Result<()> {
        let refused = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let amount = usize::try_from(amount).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(amount).map_err(refused)?;
        while chunk.len() < amount {
            let part = &mut self.block[..BLOCK.min(amount - chunk.len())];
            self.noise.fill(part);
            chunk.extend_from_slice(part);
        }
        *taken += amount as u64;
        self.chunks.push(chunk);
        Ok(())
    }

    fn give_back(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
