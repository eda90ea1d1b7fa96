//! A set of bounded size.

use std::collections::{BTreeSet, VecDeque};

/// Maximum number of values. A watch may run for months.
const MAX_VALUES: usize = 20_000;

/// The set of the last [`MAX_VALUES`] different values that were inserted. Inserting a value that
/// the set contains does not keep the value for longer.
#[derive(Clone, Debug)]
pub(super) struct BoundedSet<T> {
    values: BTreeSet<T>,
    /// The values, the oldest first.
    order: VecDeque<T>,
}

impl<T> Default for BoundedSet<T> {
    fn default() -> Self {
        Self { values: BTreeSet::new(), order: VecDeque::new() }
    }
}

impl<T: Ord + Clone> BoundedSet<T> {
    /// Inserts a value. Returns false if the set contained it.
    pub(super) fn insert(&mut self, value: T) -> bool {
        let is_new = self.values.insert(value.clone());
        if is_new {
            self.order.push_back(value);
            if self.order.len() > MAX_VALUES
                && let Some(oldest) = self.order.pop_front()
            {
                self.values.remove(&oldest);
            }
        }
        is_new
    }

    /// Returns whether the set contains a value.
    pub(super) fn contains(&self, value: &T) -> bool {
        self.values.contains(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_oldest_values() {
        let mut set = BoundedSet::default();
        assert!((0..MAX_VALUES).all(|value| set.insert(value)) && !set.insert(0));
        assert!(set.insert(MAX_VALUES));
        assert!(!set.contains(&0), "a repetition does not keep a value");
        assert!(set.contains(&1) && set.values.len() == MAX_VALUES);
        assert!(set.insert(0));
    }
}
