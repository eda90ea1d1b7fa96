//! Budget of an external node for cases that must not put it under pressure.

use evictlab_rules::quantity::MIB;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::pressure::room::Amounts;

/// Memory and disk that the pods of the running cases may take together by their limits.
pub(crate) struct RoomBudget {
    memory: ResourceBudget,
    disk: ResourceBudget,
}

/// Budget of one resource, with one permit per MiB.
struct ResourceBudget {
    permits: Semaphore,
    /// Permits in total.
    size: u32,
}

/// Room of a case. Dropping it gives the amounts back.
pub(crate) struct RoomPermit<'a> {
    _memory: SemaphorePermit<'a>,
    _disk: SemaphorePermit<'a>,
}

impl RoomBudget {
    /// Creates a budget.
    pub(crate) fn new(budget: Amounts) -> Self {
        Self { memory: ResourceBudget::new(budget.memory), disk: ResourceBudget::new(budget.disk) }
    }

    /// Waits until the budget covers limits; limits that exceed it take all of it.
    pub(crate) async fn acquire(&self, limits: Amounts) -> Option<RoomPermit<'_>> {
        let memory = self.memory.acquire(limits.memory).await?;
        Some(RoomPermit { _memory: memory, _disk: self.disk.acquire(limits.disk).await? })
    }
}

impl ResourceBudget {
    fn new(bytes: u64) -> Self {
        let size = u32::try_from(bytes / MIB).unwrap_or(u32::MAX);
        Self { permits: Semaphore::new(size as usize), size }
    }

    async fn acquire(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let needed = u32::try_from(bytes.div_ceil(MIB)).unwrap_or(u32::MAX);
        self.permits.acquire_many(needed.min(self.size)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn cases_share_the_room_of_a_node() {
        let budget = RoomBudget::new(Amounts { memory: 1000 * MIB, disk: 4096 * MIB });
        let take = async |memory: u64, disk: u64| {
            let limits = Amounts { memory: memory * MIB, disk: disk * MIB };
            let taken = timeout(Duration::from_secs(1), budget.acquire(limits)).await;
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
