//! Values that were seen recently.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Deref;

/// Maximum number of values. A watch may run for months.
const MAX_RECENT: usize = 20_000;

/// A set of the values that were inserted last.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    values: BTreeSet<T>,
    order: VecDeque<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { values: BTreeSet::new(), order: VecDeque::new() }
    }
}

impl<T: Ord + Clone> Recent<T> {
    /// Inserts a value. Returns false if the set contained it.
    pub(super) fn insert(&mut self, value: T) -> bool {
        let is_new = self.values.insert(value.clone());
        if is_new {
            self.order.push_back(value);
            if self.order.len() > MAX_RECENT
                && let Some(oldest) = self.order.pop_front()
            {
                self.values.remove(&oldest);
            }
        }
        is_new
    }
}

impl<T> Deref for Recent<T> {
    type Target = BTreeSet<T>;

    fn deref(&self) -> &BTreeSet<T> {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_oldest_values() {
        let mut recent = Recent::default();
        assert!((0..MAX_RECENT).all(|value| recent.insert(value)) && !recent.insert(0));
        assert!(recent.insert(MAX_RECENT));
        assert_eq!((recent.len(), recent.first()), (MAX_RECENT, Some(&1)));
        assert!(recent.insert(0));
    }
}
