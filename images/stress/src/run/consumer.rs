//! A resource that is consumed.

use std::io;

use evictlab_stress::{ConsumeOptions, Resource};

use super::files::{Disk, Inodes, PageCache};
use super::logs::Logs;
use super::memory::Memory;
use super::pids::Pids;

/// A resource that is consumed.
pub(super) enum Consumer {
    Memory(Memory),
    Disk(Disk),
    Inodes(Inodes),
    Logs(Logs),
    Pids(Pids),
    PageCache(PageCache),
}

impl Consumer {
    /// Prepares the consumption of a resource; consumes nothing of it.
    pub(super) fn new(options: &ConsumeOptions) -> io::Result<Self> {
        Ok(match options.resource {
            Resource::Memory => Self::Memory(Memory::new()),
            Resource::Disk { allocate } => Self::Disk(Disk::new(&options.path, allocate)?),
            Resource::Inodes => Self::Inodes(Inodes::new(&options.path)?),
            Resource::Logs => Self::Logs(Logs::new()),
            Resource::Pids => Self::Pids(Pids::new()?),
            Resource::PageCache => Self::PageCache(PageCache::new(&options.path)?),
        })
    }

    /// Consumes an amount and adds it to `consumed`; on an error, the part of it that succeeded.
    pub(super) fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
        match self {
            Self::Memory(memory) => memory.consume(amount, consumed),
            Self::Disk(disk) => disk.consume(amount, consumed),
            Self::Inodes(inodes) => inodes.consume(amount, consumed),
            Self::Logs(logs) => logs.consume(amount, consumed),
            Self::Pids(pids) => pids.consume(amount, consumed),
            Self::PageCache(cache) => cache.consume(amount, consumed),
        }
    }

    /// Releases everything.
    ///
    /// # Errors
    /// Files cannot be removed, or a child not be waited for; log lines cannot be released.
    pub(super) fn release(self) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                drop(memory);
                Ok(())
            }
            Self::Disk(disk) => disk.release(),
            Self::Inodes(inodes) => inodes.release(),
            Self::Logs(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Pids(pids) => pids.release(),
            Self::PageCache(cache) => cache.release(),
        }
    }
}
