//! Cache that forgets its least recently used entry.

use std::collections::BTreeMap;

/// Maximum number of entries (client-go `maxLruCacheEntries`).
pub(super) const MAX_LRU_CACHE_ENTRIES: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct LruCache<V> {
    /// Values with the numbers of their last uses.
    entries: BTreeMap<String, (u64, V)>,
    /// Keys by the numbers of their last uses.
    uses: BTreeMap<u64, String>,
    last_use: u64,
}

impl<V> Default for LruCache<V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), uses: BTreeMap::new(), last_use: 0 }
    }
}

impl<V> LruCache<V> {
    /// Returns the value of a key, or inserts one. A full cache then loses its least recently used
    /// entry.
    pub(super) fn get_or_insert_with(&mut self, key: String, create: impl FnOnce() -> V) -> &mut V {
        match self.entries.get(&key) {
            Some((used, _)) => drop(self.uses.remove(used)),
            None if self.entries.len() >= MAX_LRU_CACHE_ENTRIES => {
                if let Some((_, oldest)) = self.uses.pop_first() {
                    self.entries.remove(&oldest);
                }
            }
            None => {}
        }
        self.last_use += 1;
        self.uses.insert(self.last_use, key.clone());
        let (used, value) = self.entries.entry(key).or_insert_with(|| (0, create()));
        *used = self.last_use;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_cache_loses_least_recently_used_entry() {
        let mut cache = LruCache::default();
        let mut count = |key: &str| {
            let count = cache.get_or_insert_with(key.to_owned(), || 0);
            *count += 1;
            *count
        };
        let most = MAX_LRU_CACHE_ENTRIES;
        for index in 0..most {
            count(&index.to_string());
        }
        assert_eq!(count("0"), 2);
        assert_eq!(count("new"), 1, "drops 1, as 0 was used again");
        assert_eq!([count("0"), count("2"), count("1")], [3, 2, 1]);
        let sizes = (cache.entries.len(), cache.uses.len());
        assert_eq!(sizes, (most, most));
    }
}
