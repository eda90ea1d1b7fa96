//! Memory by cgroup, as the kernel charges it.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{CgroupId, FileId, ROOT_CGROUP};
use super::types::{Cgroup, MemoryUse};

/// Memory by kind, in bytes. A cgroup's memory includes that of its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    /// Anonymous memory of processes.
    pub anon: u64,
    /// Kernel memory: stacks, page tables, slabs.
    pub kernel: u64,
    /// Page cache that was used once.
    pub inactive: u64,
    /// Page cache that was used again.
    pub active: u64,
    /// Files of a tmpfs.
    pub shmem: u64,
}

impl Pages {
    pub(super) fn anon(anon: u64) -> Self {
        Self { anon, ..Self::default() }
    }

    pub(super) fn kernel(kernel: u64) -> Self {
        Self { kernel, ..Self::default() }
    }

    pub(super) fn total(&self) -> u64 {
        self.anon + self.kernel + self.inactive + self.active + self.shmem
    }

    fn add(&mut self, other: &Self) {
        self.anon += other.anon;
        self.kernel += other.kernel;
        self.inactive += other.inactive;
        self.active += other.active;
        self.shmem += other.shmem;
    }

    fn subtract(&mut self, other: &Self) {
        self.anon -= other.anon;
        self.kernel -= other.kernel;
        self.inactive -= other.inactive;
        self.active -= other.active;
        self.shmem -= other.shmem;
    }
}

#[derive(Clone, Debug, Default)]
struct CgroupNode {
    parent: Option<CgroupId>,
    pages: Pages,
    limit: Option<u64>,
    /// Files whose pages are charged to this cgroup.
    files: BTreeSet<FileId>,
}

/// A usage of which a crossing is reported.
#[derive(Clone, Debug)]
struct Threshold {
    id: CgroupId,
    group: Cgroup,
    usage: u64,
}

/// All cgroups of a node.
#[derive(Clone, Debug)]
pub(super) struct CgroupTree {
    nodes: Vec<CgroupNode>,
    /// The node's memory, in bytes.
    total: u64,
    /// The part of it that huge pages reserve. No cgroup is charged for it.
    huge_pages: u64,
    /// Page cache of the system's own files that can be reclaimed, in bytes.
    system_cache: u64,
    thresholds: BTreeMap<String, Threshold>,
    /// Thresholds that were crossed since [`CgroupTree::take_crossed`].
    crossed: Vec<(Cgroup, u64)>,
    /// Cached pages of files, and the cgroup that used the file first and is charged.
    files: BTreeMap<FileId, (CgroupId, Pages)>,
}

impl CgroupTree {
    /// Returns the cgroups of a node with `total` bytes of memory, of which the system uses
    /// `system`.
    pub(super) fn new(total: u64, system: Pages) -> Self {
        let root = CgroupNode { pages: system, ..CgroupNode::default() };
        let pods = CgroupNode { parent: Some(ROOT_CGROUP), ..CgroupNode::default() };
        Self {
            nodes: vec![root, pods],
            total,
            huge_pages: 0,
            system_cache: system.inactive,
            thresholds: BTreeMap::new(),
            crossed: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    /// Creates a cgroup.
    pub(super) fn create(&mut self, parent: CgroupId, limit: Option<u64>) -> CgroupId {
        self.nodes.push(CgroupNode { parent: Some(parent), limit, ..CgroupNode::default() });
        CgroupId(self.nodes.len() - 1)
    }

    /// Removes a cgroup without processes. The parent takes over its page cache.
    pub(super) fn remove(&mut self, id: CgroupId) {
        let Some(parent) = self.nodes[id.0].parent else { return };
        for file in std::mem::take(&mut self.nodes[id.0].files) {
            if let Some((owner, _)) = self.files.get_mut(&file) {
                *owner = parent;
                self.nodes[parent.0].files.insert(file);
            }
        }
    }

    /// Returns the memory statistics of a cgroup.
    pub(super) fn usage(&self, id: CgroupId) -> MemoryUse {
        let pages = &self.nodes[id.0].pages;
        let usage = pages.total();
        MemoryUse { usage, working_set: usage - pages.inactive, rss: pages.anon }
    }

    /// Returns the memory of a cgroup by kind.
    pub(super) fn pages(&self, id: CgroupId) -> Pages {
        self.nodes[id.0].pages
    }

    /// Returns `MemTotal`, in bytes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the memory that huge pages reserve, in bytes.
    pub(super) fn huge_pages(&self) -> u64 {
        self.huge_pages
    }

    /// Reserves memory for huge pages, instead of what is reserved.
    pub(super) fn reserve_huge_pages(&mut self, bytes: u64) {
        self.huge_pages = bytes.min(self.total);
    }

    /// Returns the limit of a cgroup. Without one, that of the root is the node's memory without
    /// huge pages.
    pub(super) fn limit(&self, id: CgroupId) -> Option<u64> {
        self.nodes[id.0].limit.or((id == ROOT_CGROUP).then_some(self.total - self.huge_pages))
    }

    /// Sets the limit of a cgroup.
    pub(super) fn set_limit(&mut self, id: CgroupId, limit: Option<u64>) {
        self.nodes[id.0].limit = limit;
    }

    /// Returns a cgroup and its ancestors, upwards.
    fn ancestors(&self, id: CgroupId) -> impl Iterator<Item = CgroupId> {
        std::iter::successors(Some(id), |id| self.nodes[id.0].parent)
    }

    /// Returns whether a cgroup is `ancestor` or below it.
    pub(super) fn is_within(&self, id: CgroupId, ancestor: CgroupId) -> bool {
        self.ancestors(id).any(|id| id == ancestor)
    }

    /// Returns the first cgroup, upwards from `id`, whose limit does not allow `bytes` more, and
    /// the bytes that it lacks.
    pub(super) fn find_full(&self, id: CgroupId, bytes: u64) -> Option<(CgroupId, u64)> {
        self.ancestors(id).find_map(|id| {
            let excess = (self.nodes[id.0].pages.total() + bytes).checked_sub(self.limit(id)?)?;
            (excess > 0).then_some((id, excess))
        })
    }

    /// Adds memory to a cgroup and its ancestors.
    pub(super) fn charge(&mut self, id: CgroupId, pages: Pages) {
        let mut next = Some(id);
        while let Some(id) = next {
            let node = &mut self.nodes[id.0];
            let before = node.pages.total();
            node.pages.add(&pages);
            let after = node.pages.total();
            next = node.parent;
            for threshold in self.thresholds.values() {
                if threshold.id == id && before <= threshold.usage && threshold.usage < after {
                    self.crossed.push((threshold.group.clone(), threshold.usage));
                }
            }
        }
    }

    /// Notes the thresholds of a cgroup that its usage has crossed downwards.
    fn note_fallen(&mut self, id: CgroupId, before: u64) {
        let after = self.nodes[id.0].pages.total();
        for threshold in self.thresholds.values() {
            if threshold.id == id && after <= threshold.usage && threshold.usage < before {
                self.crossed.push((threshold.group.clone(), threshold.usage));
            }
        }
    }

    /// Removes memory from a cgroup and its ancestors.
    pub(super) fn uncharge(&mut self, id: CgroupId, pages: Pages) {
        let mut next = Some(id);
        while let Some(id) = next {
            let before = self.nodes[id.0].pages.total();
            self.nodes[id.0].pages.subtract(&pages);
            self.note_fallen(id, before);
            next = self.nodes[id.0].parent;
        }
    }

    /// Returns the cached pages of a file.
    pub(super) fn cached(&self, file: FileId) -> Pages {
        self.files.get(&file).map(|(_, pages)| *pages).unwrap_or_default()
    }

    /// Adds cached pages of a file. They are charged to the cgroup of its other pages; to `id` if
    /// it has none.
    pub(super) fn cache_file(&mut self, id: CgroupId, file: FileId, pages: Pages) {
        let (owner, cached) = self.files.entry(file).or_insert((id, Pages::default()));
        cached.add(&pages);
        let owner = *owner;
        self.nodes[owner.0].files.insert(file);
        self.charge(owner, pages);
    }

    /// Moves a file's inactive pages to the active list. Usage does not change.
    pub(super) fn activate(&mut self, file: FileId) {
        let Some((owner, pages)) = self.files.get_mut(&file) else { return };
        let moved = std::mem::take(&mut pages.inactive);
        pages.active += moved;
        let mut next = Some(*owner);
        while let Some(id) = next {
            let node = &mut self.nodes[id.0];
            node.pages.inactive -= moved;
            node.pages.active += moved;
            next = node.parent;
        }
    }

    /// Drops the cached pages of a file.
    pub(super) fn drop_file(&mut self, file: FileId) {
        if let Some((owner, pages)) = self.files.remove(&file) {
            self.nodes[owner.0].files.remove(&file);
            self.uncharge(owner, pages);
        }
    }

    /// Drops page cache in a cgroup, inactive pages first. Returns the number of bytes.
    pub(super) fn reclaim(&mut self, id: CgroupId, needed: u64) -> u64 {
        let mut reclaimed = 0;
        for active in [false, true] {
            let pages = self.nodes[id.0].pages;
            if reclaimed >= needed || (pages.inactive == 0 && pages.active == 0) {
                break;
            }
            let files: Vec<FileId> = (0..self.nodes.len())
                .filter(|at| !self.nodes[*at].files.is_empty() && self.is_within(CgroupId(*at), id))
                .flat_map(|at| self.nodes[at].files.iter().copied())
                .collect();
            for file in files {
                if reclaimed >= needed {
                    break;
                }
                reclaimed += self.reclaim_file(file, active, needed - reclaimed);
            }
        }
        if id == ROOT_CGROUP && reclaimed < needed {
            let bytes = self.system_cache.min(needed - reclaimed);
            self.system_cache -= bytes;
            let before = self.nodes[ROOT_CGROUP.0].pages.total();
            self.nodes[ROOT_CGROUP.0].pages.inactive -= bytes;
            self.note_fallen(ROOT_CGROUP, before);
            reclaimed += bytes;
        }
        reclaimed
    }

    /// Drops active or inactive pages of a file with the kernel memory for them.
    fn reclaim_file(&mut self, file: FileId, active: bool, needed: u64) -> u64 {
        let Some((owner, pages)) = self.files.get_mut(&file) else { return 0 };
        let all = pages.inactive + pages.active;
        let bytes = needed.min(if active { pages.active } else { pages.inactive });
        let kernel = (u128::from(pages.kernel) * u128::from(bytes)).checked_div(u128::from(all));
        let kernel = u64::try_from(kernel.unwrap_or(0)).unwrap_or(0);
        let (inactive, active) = if active { (0, bytes) } else { (bytes, 0) };
        let dropped = Pages { inactive, active, kernel, ..Pages::default() };
        pages.subtract(&dropped);
        let owner = *owner;
        self.uncharge(owner, dropped);
        bytes + kernel
    }

    /// Sets the threshold of a key.
    pub(super) fn set_threshold(&mut self, key: &str, id: CgroupId, group: Cgroup, usage: u64) {
        self.thresholds.insert(key.to_owned(), Threshold { id, group, usage });
    }

    /// Returns whether thresholds were crossed since [`CgroupTree::take_crossed`].
    pub(super) fn has_crossed(&self) -> bool {
        !self.crossed.is_empty()
    }

    /// Takes the thresholds that were crossed in either direction since the last call, with their
    /// usage, as the kernel's `mem_cgroup_threshold` notifies.
    pub(super) fn take_crossed(&mut self) -> Vec<(Cgroup, u64)> {
        std::mem::take(&mut self.crossed)
    }
}
