//! The file systems of a node, with writable layers, logs and volumes; and tmpfs volumes.

use std::collections::BTreeMap;
use std::ops::Bound;

use evictlab_rules::quantity::KIB;

use super::ids::{ContainerKey, FileId, TreeId};
use super::types::{DiskUse, Filesystem};

/// The block size of the file system, in bytes.
pub(super) const BLOCK: u64 = 4096;
/// The largest content that is stored, in bytes. Of larger files only the size is known.
const MAX_STORED: usize = 64 * KIB as usize;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Regular,
    Directory,
    /// The log of a container. The container stores its content.
    Log(ContainerKey),
}

/// A file.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub kind: FileKind,
    pub tree: TreeId,
    /// The length in bytes.
    pub size: u64,
    /// The disk space in bytes.
    pub blocks: u64,
    /// The content, if it is stored.
    pub text: Option<Vec<u8>>,
    /// True if its pages were used since they were cached. The next use makes them active.
    pub referenced: bool,
    /// True if it takes an inode of its file system.
    accounted: bool,
}

/// The file system of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// nodefs, with volumes, logs and the node's own files.
    #[default]
    Node,
    /// The file system of writable layers: nodefs, or a dedicated imagefs.
    Layers,
    /// A tmpfs of this size, in bytes.
    Memory(u64),
}

/// Space of a file system.
#[derive(Clone, Copy, Debug)]
struct Space {
    capacity: DiskUse,
    used: DiskUse,
    /// Space that images take in addition.
    images: DiskUse,
}

impl Space {
    fn available(&self) -> DiskUse {
        self.capacity.saturating_sub(self.used + self.images)
    }

    fn filesystem(&self) -> Filesystem {
        Filesystem { capacity: self.capacity, used: self.used }
    }
}

/// A writable layer, a volume or the node's own files.
#[derive(Clone, Debug, Default)]
struct FileTree {
    names: BTreeMap<String, FileId>,
    used: DiskUse,
    place: Place,
    /// Number of changes to its files.
    changes: u64,
}

/// The disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no space left on the node's disk")]
pub struct NoSpace;

/// The file systems and all file trees of a node.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    node: Space,
    /// A file system of their own for writable layers.
    layers: Option<Space>,
    trees: Vec<Option<FileTree>>,
    files: BTreeMap<FileId, File>,
    last_file: FileId,
}

impl Disk {
    pub(super) fn new(capacity: DiskUse, used: DiskUse) -> Self {
        let node = Space { capacity, used, images: DiskUse::default() };
        Self { node, layers: None, trees: Vec::new(), files: BTreeMap::new(), last_file: FileId(0) }
    }

    /// Returns the usage of nodefs.
    pub(super) fn filesystem(&self) -> Filesystem {
        self.node.filesystem()
    }

    /// Returns the usage of the file system of writable layers, without images; `None` if the
    /// layers are on nodefs.
    pub(super) fn layers_filesystem(&self) -> Option<Filesystem> {
        self.layers.as_ref().map(Space::filesystem)
    }

    /// Moves all writable layers to a new file system, with images of this size. `reserved` is the
    /// space of layers that is not in trees.
    pub(super) fn separate_layers(&mut self, capacity: DiskUse, images: DiskUse, reserved: DiskUse) {
        self.join_layers();
        let mut new = Space { capacity, used: reserved, images };
        let trees = self.trees.iter().flatten();
        trees.filter(|tree| tree.place == Place::Layers).for_each(|tree| new.used += tree.used);
        self.node.used -= new.used;
        self.layers = Some(new);
    }

    /// Moves all writable layers back to nodefs.
    pub(super) fn join_layers(&mut self) {
        if let Some(layers) = self.layers.take() {
            self.node.used += layers.used;
        }
    }

    fn space(&mut self, place: Place) -> Option<&mut Space> {
        match place {
            Place::Node => Some(&mut self.node),
            Place::Layers => Some(self.layers.as_mut().unwrap_or(&mut self.node)),
            Place::Memory(_) => None,
        }
    }

    /// Creates an empty tree.
    pub(super) fn create_tree(&mut self, place: Place) -> TreeId {
        self.trees.push(Some(FileTree { place, ..FileTree::default() }));
        TreeId(self.trees.len() - 1)
    }

    /// Removes a tree; returns its files.
    pub(super) fn remove_tree(&mut self, id: TreeId) -> Vec<FileId> {
        let Some(tree) = self.trees[id.0].take() else { return Vec::new() };
        self.unreserve(tree.place, tree.used);
        let gone: Vec<FileId> =
            self.files.iter().filter(|(_, file)| file.tree == id).map(|(id, _)| *id).collect();
        for file in &gone {
            self.files.remove(file);
        }
        gone
    }

    /// Returns the number of changes to a tree.
    pub(super) fn changes(&self, id: TreeId) -> u64 {
        self.trees[id.0].as_ref().map_or(0, |tree| tree.changes)
    }

    fn count_change(&mut self, id: TreeId) {
        if let Some(tree) = &mut self.trees[id.0] {
            tree.changes += 1;
        }
    }

    /// Returns the usage of a tree.
    pub(super) fn used(&self, id: TreeId) -> DiskUse {
        self.trees[id.0].as_ref().map(|tree| tree.used).unwrap_or_default()
    }

    /// Returns whether a tree is in memory.
    pub(super) fn is_tmpfs(&self, id: TreeId) -> bool {
        self.tmpfs_size(id).is_some()
    }

    /// Returns the size of a tree in memory, in bytes.
    pub(super) fn tmpfs_size(&self, id: TreeId) -> Option<u64> {
        match self.place(id) {
            Place::Memory(size) => Some(size),
            _ => None,
        }
    }

    fn place(&self, id: TreeId) -> Place {
        self.trees[id.0].as_ref().map(|tree| tree.place).unwrap_or_default()
    }

    /// Reserves space outside of the trees.
    pub(super) fn reserve(&mut self, place: Place, more: DiskUse) -> Result<(), NoSpace> {
        let Some(space) = self.space(place) else { return Ok(()) };
        let available = space.available();
        if more.bytes > available.bytes || more.inodes > available.inodes {
            return Err(NoSpace);
        }
        space.used += more;
        Ok(())
    }

    /// Frees reserved space.
    pub(super) fn unreserve(&mut self, place: Place, less: DiskUse) {
        if let Some(space) = self.space(place) {
            space.used -= less;
        }
    }

    pub(super) fn file(&self, id: FileId) -> Option<&File> {
        self.files.get(&id)
    }

    pub(super) fn file_mut(&mut self, id: FileId) -> Option<&mut File> {
        self.files.get_mut(&id)
    }

    /// Returns the file of a name.
    pub(super) fn lookup(&self, tree: TreeId, name: &str) -> Option<FileId> {
        self.trees[tree.0].as_ref()?.names.get(name).copied()
    }

    /// Returns the names in a tree that start with a prefix, in order.
    pub(super) fn names<'a>(&'a self, tree: TreeId, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let trees = self.trees[tree.0].iter();
        let names = trees
            .flat_map(move |tree| tree.names.range::<str, _>((Bound::Included(prefix), Bound::Unbounded)));
        names.map(|(name, _)| name.as_str()).take_while(move |name| name.starts_with(prefix))
    }

    /// Returns the ID of a new file. A file outside of the trees, such as one of an image, has only
    /// an ID.
    pub(super) fn new_file_id(&mut self) -> FileId {
        self.last_file.0 += 1;
        self.last_file
    }

    /// Creates a file. The name must not exist.
    pub(super) fn create(&mut self, tree: TreeId, name: &str, kind: FileKind) -> Result<FileId, NoSpace> {
        let blocks = if kind == FileKind::Directory && !self.is_tmpfs(tree) { BLOCK } else { 0 };
        self.allocate(tree, DiskUse { bytes: blocks, inodes: 1 })?;
        Ok(self.insert(tree, name, kind, blocks, true))
    }

    /// Creates a file whose space is accounted for elsewhere. Does nothing if the name exists.
    pub(super) fn create_unaccounted(&mut self, tree: TreeId, name: &str, kind: FileKind) {
        if self.lookup(tree, name).is_none() {
            self.insert(tree, name, kind, 0, false);
        }
    }

    fn insert(&mut self, tree: TreeId, name: &str, kind: FileKind, blocks: u64, accounted: bool) -> FileId {
        let id = self.new_file_id();
        let file = File { kind, tree, size: 0, blocks, text: Some(Vec::new()), referenced: false, accounted };
        self.files.insert(id, file);
        if let Some(tree) = &mut self.trees[tree.0] {
            tree.names.insert(name.to_owned(), id);
            tree.changes += 1;
        }
        id
    }

    /// Returns how many of `bytes` there is space for in a tree.
    pub(super) fn available(&self, tree: TreeId, bytes: u64) -> u64 {
        let Some(tree) = &self.trees[tree.0] else { return 0 };
        let available = match tree.place {
            Place::Memory(size) => size.saturating_sub(tree.used.bytes),
            Place::Node => self.node.available().bytes,
            Place::Layers => self.layers.as_ref().unwrap_or(&self.node).available().bytes,
        };
        bytes.min(available)
    }

    /// Writes `len` bytes at an offset; returns how many there was space for. `text` is the
    /// content, if it is known.
    pub(super) fn write(&mut self, id: FileId, offset: u64, len: u64, text: Option<&[u8]>) -> u64 {
        let Some(file) = self.files.get(&id) else { return len };
        let tree = file.tree;
        let end = offset + len;
        let covered = file.size.next_multiple_of(BLOCK);
        // Holes take no space until they are written.
        let holes = covered.saturating_sub(file.blocks);
        let first = offset / BLOCK * BLOCK;
        let filled = covered.min(end.next_multiple_of(BLOCK)).saturating_sub(first).min(holes);
        let wanted = filled + end.next_multiple_of(BLOCK).saturating_sub(covered.max(first));
        let got = self.available(tree, wanted) / BLOCK * BLOCK;
        let len = len.saturating_sub(wanted - got);
        let grown = DiskUse { bytes: got, inodes: 0 };
        if self.allocate(tree, grown).is_err() {
            return 0;
        }
        let Some(file) = self.files.get_mut(&id) else { return 0 };
        file.blocks += got;
        match (&mut file.text, text) {
            (Some(known), Some(text))
                if offset as usize == known.len() && known.len() + text.len() <= MAX_STORED =>
            {
                known.extend_from_slice(&text[..len as usize]);
            }
            _ if len > 0 => file.text = None,
            _ => {}
        }
        file.size = file.size.max(offset + len);
        self.count_change(tree);
        len
    }

    /// Sets the size of a file. With `allocate` the file gets blocks for it (`fallocate`).
    pub(super) fn resize(&mut self, id: FileId, size: u64, allocate: bool) -> Result<(), NoSpace> {
        let Some(file) = self.files.get(&id) else { return Ok(()) };
        let tree = file.tree;
        let now = file.blocks;
        let wanted = if allocate {
            size.next_multiple_of(BLOCK).max(now)
        } else {
            now.min(size.next_multiple_of(BLOCK))
        };
        let grown = wanted.saturating_sub(now);
        if self.available(tree, grown) < grown {
            return Err(NoSpace);
        }
        self.allocate(tree, DiskUse { bytes: grown, inodes: 0 })?;
        self.free(tree, DiskUse { bytes: now.saturating_sub(wanted), inodes: 0 });
        if let Some(file) = self.files.get_mut(&id) {
            file.blocks = wanted;
            file.size = size;
            file.text = (size == 0).then(Vec::new);
        }
        self.count_change(tree);
        Ok(())
    }

    /// Removes a file, also one that is open; returns its ID if it existed.
    pub(super) fn unlink(&mut self, tree: TreeId, name: &str) -> Option<FileId> {
        let id = self.trees[tree.0].as_mut()?.names.remove(name)?;
        self.count_change(tree);
        let file = self.files.remove(&id)?;
        self.free(tree, DiskUse { bytes: file.blocks, inodes: u64::from(file.accounted) });
        Some(id)
    }

    fn allocate(&mut self, id: TreeId, more: DiskUse) -> Result<(), NoSpace> {
        self.reserve(self.place(id), more)?;
        if let Some(tree) = &mut self.trees[id.0] {
            tree.used += more;
        }
        Ok(())
    }

    fn free(&mut self, id: TreeId, less: DiskUse) {
        self.unreserve(self.place(id), less);
        if let Some(tree) = &mut self.trees[id.0] {
            tree.used -= less;
        }
    }
}
