//! The one filesystem of a node: writable layers, logs, volumes; and the filesystems in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::container::ContainerKey;
use super::pipe::PipeId;
use super::{DiskUse, Filesystem};

/// A file, unique in its node for ever.
pub(super) type FileId = u64;
/// A tree of files: a writable layer or a volume.
pub(super) type StoreId = usize;

/// The filesystem gives space in blocks.
pub(super) const BLOCK: u64 = 4096;
/// Contents are remembered up to so many bytes; of larger files, only the size is.
const REMEMBERED: usize = 64 << 10;

/// What an entry of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo(PipeId),
    /// A container's log, which is kept with the container.
    Log(ContainerKey),
}

/// A file.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub kind: FileKind,
    pub store: StoreId,
    /// In bytes.
    pub size: u64,
    /// What it takes of its filesystem, in bytes.
    pub blocks: u64,
    /// What is in it, if that is known.
    pub text: Option<Vec<u8>>,
    /// Its pages were used since they came into memory: a further use makes them active.
    pub referenced: bool,
    /// Whether it has a name.
    named: bool,
    /// How often it is open.
    opens: u32,
    /// Whether its entry takes an inode and blocks of its filesystem.
    counted: bool,
}

/// A tree of files.
#[derive(Clone, Debug, Default)]
struct Store {
    names: BTreeMap<String, FileId>,
    used: DiskUse,
    /// For one in memory: its size.
    memory: Option<u64>,
    /// How often something in it has changed.
    changes: u64,
}

/// Why nothing could be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no space is left on the node's disk")]
pub struct NoSpace;

/// All files of a node.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    capacity: DiskUse,
    used: DiskUse,
    stores: Vec<Option<Store>>,
    files: BTreeMap<FileId, File>,
    next: FileId,
}

impl Disk {
    pub fn new(capacity: DiskUse, used: DiskUse) -> Self {
        Self { capacity, used, stores: Vec::new(), files: BTreeMap::new(), next: 0 }
    }

    pub fn filesystem(&self) -> Filesystem {
        Filesystem { capacity: self.capacity, used: self.used }
    }

    /// An empty tree; `memory` is the size of one in memory.
    pub fn create_store(&mut self, memory: Option<u64>) -> StoreId {
        self.stores.push(Some(Store { memory, ..Store::default() }));
        self.stores.len() - 1
    }

    /// Takes a tree away; the answer is its files.
    pub fn remove_store(&mut self, id: StoreId) -> Vec<FileId> {
        let Some(store) = self.stores[id].take() else { return Vec::new() };
        if store.memory.is_none() {
            self.used.bytes -= store.used.bytes;
            self.used.inodes -= store.used.inodes;
        }
        let gone: Vec<FileId> =
            self.files.iter().filter(|(_, file)| file.store == id).map(|(id, _)| *id).collect();
        for file in &gone {
            self.files.remove(file);
        }
        gone
    }

    /// How often something in a tree has changed.
    pub fn changes(&self, id: StoreId) -> u64 {
        self.stores[id].as_ref().map_or(0, |store| store.changes)
    }

    fn changed(&mut self, id: StoreId) {
        if let Some(store) = &mut self.stores[id] {
            store.changes += 1;
        }
    }

    /// What the files of a tree take.
    pub fn used(&self, id: StoreId) -> DiskUse {
        self.stores[id].as_ref().map(|store| store.used).unwrap_or_default()
    }

    pub fn is_memory(&self, id: StoreId) -> bool {
        self.stores[id].as_ref().is_some_and(|store| store.memory.is_some())
    }

    /// Takes space that belongs to no tree, as a log does; nothing is taken if there is none.
    pub fn take(&mut self, bytes: u64, inodes: u64) -> Result<(), NoSpace> {
        if self.used.bytes + bytes > self.capacity.bytes || self.used.inodes + inodes > self.capacity.inodes {
            return Err(NoSpace);
        }
        self.used.bytes += bytes;
        self.used.inodes += inodes;
        Ok(())
    }

    /// Gives back what was taken.
    pub fn give(&mut self, bytes: u64, inodes: u64) {
        self.used.bytes -= bytes;
        self.used.inodes -= inodes;
    }

    pub fn file(&self, id: FileId) -> Option<&File> {
        self.files.get(&id)
    }

    pub fn file_mut(&mut self, id: FileId) -> Option<&mut File> {
        self.files.get_mut(&id)
    }

    pub fn named(&self, store: StoreId, name: &str) -> Option<FileId> {
        self.stores[store].as_ref()?.names.get(name).copied()
    }

    /// The names in a tree that begin so, in order.
    pub fn names<'a>(&'a self, store: StoreId, beginning: &'a str) -> impl Iterator<Item = &'a str> {
        let stores = self.stores[store].iter();
        let names = stores.flat_map(move |store| {
            store.names.range::<str, _>((Bound::Included(beginning), Bound::Unbounded))
        });
        names.map(|(name, _)| name.as_str()).take_while(move |name| name.starts_with(beginning))
    }

    /// A number for a file that is none of this disk's trees, such as one of an image.
    pub fn foreign(&mut self) -> FileId {
        self.next += 1;
        self.next
    }

    /// Makes an entry. Its name must be free.
    pub fn create(&mut self, store: StoreId, name: &str, kind: FileKind) -> Result<FileId, NoSpace> {
        let blocks = if kind == FileKind::Directory && !self.is_memory(store) { BLOCK } else { 0 };
        self.occupy(store, DiskUse { bytes: blocks, inodes: 1 })?;
        Ok(self.insert(store, name, kind, blocks, true))
    }

    /// Makes an entry that takes nothing: it was there before, or is counted elsewhere. One of this name is left as it is.
    pub fn create_uncounted(&mut self, store: StoreId, name: &str, kind: FileKind) {
        if self.named(store, name).is_none() {
            self.insert(store, name, kind, 0, false);
        }
    }

    fn insert(&mut self, store: StoreId, name: &str, kind: FileKind, blocks: u64, counted: bool) -> FileId {
        self.next += 1;
        let file = File {
            kind,
            store,
            size: 0,
            blocks,
            text: Some(Vec::new()),
            referenced: false,
            named: true,
            opens: 0,
            counted,
        };
        self.files.insert(self.next, file);
        if let Some(store) = &mut self.stores[store] {
            store.names.insert(name.to_owned(), self.next);
            store.changes += 1;
        }
        self.next
    }

    /// How many of `bytes` a tree can take.
    pub fn room(&self, store: StoreId, bytes: u64) -> u64 {
        let Some(store) = &self.stores[store] else { return 0 };
        match store.memory {
            Some(size) => bytes.min(size.saturating_sub(store.used.bytes)),
            None => bytes.min(self.capacity.bytes.saturating_sub(self.used.bytes)),
        }
    }

    /// Makes a file hold `len` bytes from `at` on. The answer is how many it could take, and by how much its blocks grew.
    pub fn write(&mut self, id: FileId, at: u64, len: u64, text: Option<&[u8]>) -> (u64, u64) {
        let Some(file) = self.files.get(&id) else { return (len, 0) };
        let store = file.store;
        let end = at + len;
        let covered = file.size.next_multiple_of(BLOCK);
        // Only what is written takes space: holes do not, until something is written into them.
        let holes = covered.saturating_sub(file.blocks);
        let first = at / BLOCK * BLOCK;
        let filled = covered.min(end.next_multiple_of(BLOCK)).saturating_sub(first).min(holes);
        let wanted = filled + end.next_multiple_of(BLOCK).saturating_sub(covered.max(first));
        let got = self.room(store, wanted) / BLOCK * BLOCK;
        let len = len.saturating_sub(wanted - got);
        let grown = DiskUse { bytes: got, inodes: 0 };
        if self.occupy(store, grown).is_err() {
            return (0, 0);
        }
        let Some(file) = self.files.get_mut(&id) else { return (0, 0) };
        file.blocks += got;
        match (&mut file.text, text) {
            (Some(known), Some(text))
                if at as usize == known.len() && known.len() + text.len() <= REMEMBERED =>
            {
                known.extend_from_slice(&text[..len as usize]);
            }
            _ if len > 0 => file.text = None,
            _ => {}
        }
        file.size = file.size.max(at + len);
        self.changed(store);
        (len, got)
    }

    /// Gives a file a size without writing: `blocks` says whether the space is taken too (`fallocate`).
    pub fn resize(&mut self, id: FileId, size: u64, blocks: bool) -> Result<u64, NoSpace> {
        let Some(file) = self.files.get(&id) else { return Ok(0) };
        let store = file.store;
        let now = file.blocks;
        let wanted = if blocks {
            size.next_multiple_of(BLOCK).max(now)
        } else {
            now.min(size.next_multiple_of(BLOCK))
        };
        let grown = wanted.saturating_sub(now);
        if self.room(store, grown) < grown {
            return Err(NoSpace);
        }
        self.occupy(store, DiskUse { bytes: grown, inodes: 0 })?;
        self.vacate(store, DiskUse { bytes: now.saturating_sub(wanted), inodes: 0 });
        if let Some(file) = self.files.get_mut(&id) {
            file.blocks = wanted;
            file.size = size;
            file.text = (size == 0).then(Vec::new);
        }
        self.changed(store);
        Ok(grown)
    }

    /// Takes an entry's name away. The answer is the file if it is gone with that: one that is open stays.
    pub fn unlink(&mut self, store: StoreId, name: &str) -> Option<FileId> {
        let id = self.stores[store].as_mut()?.names.remove(name)?;
        self.changed(store);
        self.files.get_mut(&id)?.named = false;
        self.release(id)
    }

    /// Gives an entry another name.
    pub fn rename(&mut self, store: StoreId, from: &str, to: &str) {
        if let Some(store) = &mut self.stores[store]
            && let Some(id) = store.names.remove(from)
        {
            store.names.insert(to.to_owned(), id);
            store.changes += 1;
        }
    }

    pub fn open(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.opens += 1;
        }
    }

    /// The answer is the file if it is gone with that.
    pub fn close(&mut self, id: FileId) -> Option<FileId> {
        self.files.get_mut(&id)?.opens -= 1;
        self.release(id)
    }

    fn release(&mut self, id: FileId) -> Option<FileId> {
        let file = self.files.get(&id)?;
        if file.named || file.opens > 0 {
            return None;
        }
        let (store, blocks, inodes) = (file.store, file.blocks, u64::from(file.counted));
        self.vacate(store, DiskUse { bytes: blocks, inodes });
        self.files.remove(&id);
        Some(id)
    }

    fn occupy(&mut self, id: StoreId, more: DiskUse) -> Result<(), NoSpace> {
        if !self.is_memory(id) {
            self.take(more.bytes, more.inodes)?;
        }
        if let Some(store) = &mut self.stores[id] {
            store.used.bytes += more.bytes;
            store.used.inodes += more.inodes;
        }
        Ok(())
    }

    fn vacate(&mut self, id: StoreId, less: DiskUse) {
        if !self.is_memory(id) {
            self.give(less.bytes, less.inodes);
        }
        if let Some(store) = &mut self.stores[id] {
            store.used.bytes -= less.bytes;
            store.used.inodes -= less.inodes;
        }
    }
}
