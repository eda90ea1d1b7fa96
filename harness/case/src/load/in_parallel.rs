//! Work on many items, on all processors.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// Minimum number of items for a thread.
const MIN_SHARE: usize = 16;

/// Applies `work` to all items, on all processors. Returns the results in the order of the items.
///
/// Each thread gets an equal share in advance: case files take about the same time, less than it
/// takes to start a thread. For long work of different lengths, see `on_all_cores` of the crate
/// `evictlab-tools`, whose threads take one item after the other.
pub(super) fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = items.len().div_ceil(threads).max(MIN_SHARE);
    if items.len() <= share {
        return items.into_iter().map(work).collect();
    }
    let (mut items, work) = (items.into_iter().peekable(), &work);
    thread::scope(|scope| {
        let mut parts = vec![];
        while items.peek().is_some() {
            let share: Vec<T> = items.by_ref().take(share).collect();
            parts.push(scope.spawn(move || share.into_iter().map(work).collect::<Vec<R>>()));
        }
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
