//! Memory by control group, as the kernel charges it.

use std::collections::{BTreeMap, BTreeSet};

use super::disk::FileId;
use super::{Cgroup, MemoryUse};

/// A group by its place in the tree.
pub(super) type GroupId = usize;

/// The node's group.
pub(super) const ROOT: GroupId = 0;
/// The group of all pods.
pub(super) const PODS: GroupId = 1;

/// Bytes by what they are. Those of a group hold those of the groups below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    /// Of processes.
    pub anon: u64,
    /// The kernel's own for the group: stacks, page tables, slabs.
    pub kernel: u64,
    /// Page cache that was used once.
    pub inactive: u64,
    /// Page cache that was used again.
    pub active: u64,
    /// Files that live in memory.
    pub shmem: u64,
}

impl Pages {
    pub fn anon(anon: u64) -> Self {
        Self { anon, ..Self::default() }
    }

    pub fn kernel(kernel: u64) -> Self {
        Self { kernel, ..Self::default() }
    }

    pub fn total(&self) -> u64 {
        self.anon + self.kernel + self.inactive + self.active + self.shmem
    }

    fn add(&mut self, other: &Self) {
        self.anon += other.anon;
        self.kernel += other.kernel;
        self.inactive += other.inactive;
        self.active += other.active;
        self.shmem += other.shmem;
    }

    fn take(&mut self, other: &Self) {
        self.anon -= other.anon;
        self.kernel -= other.kernel;
        self.inactive -= other.inactive;
        self.active -= other.active;
        self.shmem -= other.shmem;
    }
}

#[derive(Clone, Debug, Default)]
struct Group {
    parent: Option<GroupId>,
    pages: Pages,
    limit: Option<u64>,
    /// The files whose pages are charged to it.
    files: BTreeSet<FileId>,
}

/// A level of usage of which somebody wants to know.
#[derive(Clone, Debug)]
struct Mark {
    group: GroupId,
    name: Cgroup,
    usage: u64,
}

/// All groups.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    all: Vec<Group>,
    /// What the machine has.
    total: u64,
    /// Page cache of the system's own files.
    system: u64,
    marks: BTreeMap<String, Mark>,
    /// Marks that were passed since they were last asked for.
    passed: Vec<(Cgroup, u64)>,
    /// Pages that files have in memory, and to whom they are charged: to whoever used them first.
    files: BTreeMap<FileId, (GroupId, Pages)>,
}

impl Groups {
    /// The node's group and that of the pods. The node can hold `total` bytes.
    pub fn new(total: u64, system: Pages) -> Self {
        let own = system.inactive;
        let root = Group { pages: system, ..Group::default() };
        let pods = Group { parent: Some(ROOT), ..Group::default() };
        Self {
            all: vec![root, pods],
            total,
            system: own,
            marks: BTreeMap::new(),
            passed: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    pub fn create(&mut self, parent: GroupId, limit: Option<u64>) -> GroupId {
        self.all.push(Group { parent: Some(parent), limit, ..Group::default() });
        self.all.len() - 1
    }

    /// Takes an empty group away: pages of files that are still there pass to the group above.
    pub fn remove(&mut self, id: GroupId) {
        let Some(parent) = self.all[id].parent else { return };
        for file in std::mem::take(&mut self.all[id].files) {
            if let Some((owner, _)) = self.files.get_mut(&file) {
                *owner = parent;
                self.all[parent].files.insert(file);
            }
        }
    }

    pub fn usage(&self, id: GroupId) -> MemoryUse {
        let pages = &self.all[id].pages;
        let usage = pages.total();
        MemoryUse { usage, working_set: usage - pages.inactive, rss: pages.anon }
    }

    /// What a group holds.
    pub fn pages(&self, id: GroupId) -> Pages {
        self.all[id].pages
    }

    /// `MemTotal`, in bytes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What a group may use: the node's, all there is unless it is bounded.
    pub fn limit(&self, id: GroupId) -> Option<u64> {
        self.all[id].limit.or((id == ROOT).then_some(self.total))
    }

    pub fn set_limit(&mut self, id: GroupId, limit: Option<u64>) {
        self.all[id].limit = limit;
    }

    /// Whether a group lies in another, or is it.
    pub fn within(&self, mut id: GroupId, above: GroupId) -> bool {
        while id != above {
            match self.all[id].parent {
                Some(parent) => id = parent,
                None => return false,
            }
        }
        true
    }

    /// The first group, upwards from `id`, that is too small for so many bytes more, and by how much.
    pub fn too_small(&self, mut id: GroupId, bytes: u64) -> Option<(GroupId, u64)> {
        loop {
            let group = &self.all[id];
            let needed = group.pages.total() + bytes;
            if let Some(limit) = self.limit(id)
                && needed > limit
            {
                return Some((id, needed - limit));
            }
            id = group.parent?;
        }
    }

    pub fn charge(&mut self, id: GroupId, pages: Pages) {
        let more = pages.total();
        let mut at = Some(id);
        while let Some(id) = at {
            let group = &mut self.all[id];
            let before = group.pages.total();
            group.pages.add(&pages);
            at = group.parent;
            for mark in self.marks.values() {
                if mark.group == id && before <= mark.usage && mark.usage < before + more {
                    self.passed.push((mark.name.clone(), mark.usage));
                }
            }
        }
    }

    pub fn uncharge(&mut self, id: GroupId, pages: Pages) {
        let mut at = Some(id);
        while let Some(id) = at {
            self.all[id].pages.take(&pages);
            at = self.all[id].parent;
        }
    }

    /// What a file has in memory.
    pub fn cached(&self, file: FileId) -> Pages {
        self.files.get(&file).map(|(_, pages)| *pages).unwrap_or_default()
    }

    /// Gives a file so many pages more; they are charged to whom its pages are charged, or to `id` if it has none.
    pub fn cache(&mut self, id: GroupId, file: FileId, pages: Pages) {
        let (owner, all) = self.files.entry(file).or_insert((id, Pages::default()));
        all.add(&pages);
        let owner = *owner;
        self.all[owner].files.insert(file);
        self.charge(owner, pages);
    }

    /// Makes a file's inactive pages active: they were used again.
    pub fn activate(&mut self, file: FileId) {
        let Some((owner, pages)) = self.files.get_mut(&file) else { return };
        let moved = std::mem::take(&mut pages.inactive);
        pages.active += moved;
        // Nothing grows by it: no mark is passed.
        let mut at = Some(*owner);
        while let Some(id) = at {
            let group = &mut self.all[id];
            group.pages.inactive -= moved;
            group.pages.active += moved;
            at = group.parent;
        }
    }

    /// A file is gone, and its pages with it.
    pub fn drop_file(&mut self, file: FileId) {
        if let Some((owner, pages)) = self.files.remove(&file) {
            self.all[owner].files.remove(&file);
            self.uncharge(owner, pages);
        }
    }

    /// Drops page cache of a group and those below it, what was used once first. The answer is how much it dropped.
    pub fn reclaim(&mut self, id: GroupId, needed: u64) -> u64 {
        let mut got = 0;
        for active in [false, true] {
            if got >= needed || (self.all[id].pages.inactive == 0 && self.all[id].pages.active == 0) {
                break;
            }
            let members: Vec<FileId> = (0..self.all.len())
                .filter(|at| !self.all[*at].files.is_empty() && self.within(*at, id))
                .flat_map(|at| self.all[at].files.iter().copied())
                .collect();
            for file in members {
                if got >= needed {
                    break;
                }
                let Some((owner, pages)) = self.files.get_mut(&file) else { continue };
                let all = pages.inactive + pages.active;
                let kind = if active { &mut pages.active } else { &mut pages.inactive };
                let cut = (*kind).min(needed - got);
                *kind -= cut;
                // The slabs of those pages go with them.
                let slab =
                    (u128::from(pages.kernel) * u128::from(cut)).checked_div(u128::from(all)).unwrap_or(0);
                let slab = u64::try_from(slab).unwrap_or(0);
                pages.kernel -= slab;
                got += cut + slab;
                let cut = if active {
                    Pages { active: cut, kernel: slab, ..Pages::default() }
                } else {
                    Pages { inactive: cut, kernel: slab, ..Pages::default() }
                };
                let owner = *owner;
                self.uncharge(owner, cut);
            }
        }
        if id == ROOT && got < needed {
            let cut = self.system.min(needed - got);
            self.system -= cut;
            self.all[ROOT].pages.inactive -= cut;
            got += cut;
        }
        got
    }

    pub fn arm(&mut self, key: &str, group: GroupId, name: Cgroup, usage: u64) {
        self.marks.insert(key.to_owned(), Mark { group, name, usage });
    }

    /// The marks that were passed since the last question.
    pub fn passed(&mut self) -> Vec<(Cgroup, u64)> {
        std::mem::take(&mut self.passed)
    }

    pub fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }
}
