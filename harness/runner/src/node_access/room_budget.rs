//! Budget of an external node for cases that must not put it under pressure.

use evictlab_rules::quantity::MIB;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Memory and disk that the pods of the running cases may take together by their limits. Each has
/// one permit per MiB.
pub(crate) struct RoomBudget {
    permits: [Semaphore; 2],
    /// Permits in total.
    sizes: [u32; 2],
}

impl RoomBudget {
    /// Creates a budget of memory and disk, in bytes.
    pub(crate) fn new(budget: [u64; 2]) -> Self {
        let sizes = budget.map(|bytes| u32::try_from(bytes / MIB).unwrap_or(u32::MAX));
        Self { permits: sizes.map(|size| Semaphore::new(size as usize)), sizes }
    }

    /// Waits until the budget covers limits on memory and disk, in bytes; limits that exceed it
    /// take all of it. Dropping the permits gives the amounts back.
    pub(crate) async fn acquire(&self, limits: [u64; 2]) -> Option<[SemaphorePermit<'_>; 2]> {
        let takes = |index: usize| {
            let wanted = u32::try_from(limits[index].div_ceil(MIB)).unwrap_or(u32::MAX);
            self.permits[index].acquire_many(wanted.min(self.sizes[index]))
        };
        Some([takes(0).await.ok()?, takes(1).await.ok()?])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn cases_share_the_room_of_a_node() {
        let budget = RoomBudget::new([1000 * MIB, 4096 * MIB]);
        let take = async |memory: u64, disk: u64| {
            let taken = timeout(Duration::from_secs(1), budget.acquire([memory * MIB, disk * MIB])).await;
            taken.ok().flatten()
        };
        let first = take(600, 1024).await;
        assert!(first.is_some());
        assert!(take(500, 1024).await.is_none(), "400Mi of memory are left");
        let second = take(400, 3072).await;
        assert!(second.is_some());
        assert!(take(0, 1).await.is_none(), "the disk is in use");
        drop((first, second));
        assert!(take(5000, 5000).await.is_some(), "more than the budget takes all of it");
    }
}
