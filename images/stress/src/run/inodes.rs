//! Inodes.

use std::io;

use super::folder::Folder;
use super::take::Taker;

/// Empty files.
pub struct Inodes(Folder);

impl Inodes {
    pub fn new(path: &str) -> io::Result<Self> {
        Folder::make(path, "inodes").map(Self)
    }
}

impl Taker for Inodes {
    fn take(&mut self, amount: u64, taken: &mut u64) -> io::Result<()> {
        for _ in 0..amount {
            self.0.file(&taken.to_string())?;
            *taken += 1;
        }
        Ok(())
    }

    fn give_back(self: Box<Self>) -> io::Result<()> {
        self.0.remove()
    }
}
