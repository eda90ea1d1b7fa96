//! Disk.

use std::fs::File;
use std::io::{self, Write};

use rustix::fs::{FallocateFlags, fallocate};

use super::folder::Folder;
use super::noise::{BLOCK, Noise};
use super::take::Taker;

/// A file that grows.
pub struct Disk {
    folder: Folder,
    file: File,
    noise: Noise,
    block: Vec<u8>,
    allocate: bool,
}

impl Disk {
    pub fn new(path: &str, allocate: bool) -> io::Result<Self> {
        let folder = Folder::make(path, "disk")?;
        let file = folder.file("file")?;
        Ok(Self { folder, file, noise: Noise::new(), block: vec![0; BLOCK], allocate })
    }
}

impl Taker for Disk {
    fn take(&mut self, amount: u64, taken: &mut u64) -> io::Result<()> {
        if self.allocate {
            fallocate(&self.file, FallocateFlags::empty(), *taken, amount)?;
            *taken += amount;
            return Ok(());
        }
        write(&mut self.file, &mut self.noise, &mut self.block, amount, taken)?;
        // What is only in the page cache is memory as well, and may have no blocks yet.
        self.file.sync_data()
    }

    fn give_back(self: Box<Self>) -> io::Result<()> {
        drop(self.file);
        self.folder.remove()
    }
}

/// Writes so much noise at the end of a file.
pub fn write(
    file: &mut File,
    noise: &mut Noise,
    block: &mut [u8],
    amount: u64,
    written: &mut u64,
) -> io::Result<()> {
    let mut left = amount;
    while left > 0 {
        let most = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let part = &mut block[..most];
        noise.fill(part);
        // Not write_all: what got in before the disk was full counts.
        let got = match file.write(part) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other? as u64,
        };
        left -= got;
        *written += got;
    }
    Ok(())
}
