//! Resources that files take: disk space, inodes and page cache.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};

use super::directory::RunDirectory;
use super::random::{BLOCK, RandomBytes};

/// The number of reads of page cache. Pages that are read twice are active; the kubelet subtracts
/// only inactive ones from the working set.
const READS: usize = 2;

/// Disk space: a file that grows.
pub(super) struct Disk {
    file: RandomFile,
    allocate: bool,
}

impl Disk {
    pub(super) fn new(path: &str, allocate: bool) -> io::Result<Self> {
        Ok(Self { file: RandomFile::create(path, "disk")?, allocate })
    }

    pub(super) fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
        if self.allocate {
            fallocate(&self.file.file, FallocateFlags::empty(), *consumed, amount)?;
            *consumed += amount;
            return Ok(());
        }
        self.file.append(amount, consumed)
    }

    pub(super) fn release(self) -> io::Result<()> {
        self.file.remove()
    }
}

/// Active page cache: a file that grows and is read.
pub(super) struct PageCache(RandomFile);

impl PageCache {
    pub(super) fn new(path: &str) -> io::Result<Self> {
        RandomFile::create(path, "page-cache").map(Self)
    }

    pub(super) fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
        let start = *consumed;
        self.0.append(amount, consumed)?;
        for _ in 0..READS {
            let mut offset = start;
            while offset < *consumed {
                let read = self.0.file.read_at(&mut self.0.block, offset)?;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                offset += read as u64;
            }
        }
        Ok(())
    }

    pub(super) fn release(self) -> io::Result<()> {
        self.0.remove()
    }
}

/// Inodes: empty files.
pub(super) struct Inodes(RunDirectory);

impl Inodes {
    pub(super) fn new(path: &str) -> io::Result<Self> {
        RunDirectory::create(path, "inodes").map(Self)
    }

    pub(super) fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
        for _ in 0..amount {
            self.0.create_file(&consumed.to_string())?;
            *consumed += 1;
        }
        Ok(())
    }

    pub(super) fn release(self) -> io::Result<()> {
        self.0.remove()
    }
}

/// A file of random bytes in a directory of its own.
struct RandomFile {
    directory: RunDirectory,
    file: File,
    random: RandomBytes,
    block: Vec<u8>,
}

impl RandomFile {
    fn create(path: &str, name: &str) -> io::Result<Self> {
        let directory = RunDirectory::create(path, name)?;
        let file = directory.create_file("file")?;
        Ok(Self { directory, file, random: RandomBytes::new(), block: vec![0; BLOCK] })
    }

    /// Appends bytes and syncs the file: dirty pages take memory and may have no blocks yet.
    fn append(&mut self, amount: u64, written: &mut u64) -> io::Result<()> {
        let mut left = amount;
        while left > 0 {
            let most = self.block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let part = &mut self.block[..most];
            self.random.fill(part);
            // `write_all` does not return the part that was written before the disk was full.
            let count = match self.file.write(part) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                other => other? as u64,
            };
            left -= count;
            *written += count;
        }
        self.file.sync_data()
    }

    fn remove(self) -> io::Result<()> {
        drop(self.file);
        self.directory.remove()
    }
}
