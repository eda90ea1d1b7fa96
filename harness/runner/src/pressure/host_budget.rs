//! Limits that keep the host of the nodes from running out of memory or disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evictlab_case::{Pressure, PressureSignal};
use evictlab_cluster::{HOST_RESERVE, Node, NodeError};
use evictlab_rules::quantity::MIB;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pressure::ramp::Ramp;
use crate::pressure::signal_status::available;

/// Memory, and disk, of the host that all running cases may take together, in bytes. On a large
/// host the budget grows to a part of the available amount.
pub const HOST_BUDGET: u64 = 1280 * MIB;
/// Divisors of a large host's available memory and disk that result in its budgets.
const AVAILABLE_MEMORY_PER_BUDGET: u64 = 4;
const AVAILABLE_DISK_PER_BUDGET: u64 = 2;

/// Memory and disk budgets of the running cases on the host that all nodes share.
pub(crate) struct HostBudget {
    /// `None` if every node has a machine of its own.
    budgets: Option<Budgets>,
}

/// Budgets of one host.
struct Budgets {
    memory: Budget,
    disk: Budget,
}

/// Amount of a resource that running cases may take together.
struct Budget {
    /// One permit per MiB.
    permits: Arc<Semaphore>,
    /// Size of the budget, in bytes.
    size: AtomicU64,
}

/// The host has less available than a case takes and leaves.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to reserve {resource} of the host: {available}Mi are available; the case takes {takes}Mi and leaves \
     {reserve}Mi: {missing}Mi are missing"
)]
pub(crate) struct HostTooSmall {
    pub(crate) resource: &'static str,
    pub(crate) available: u64,
    pub(crate) takes: u64,
    pub(crate) reserve: u64,
    pub(crate) missing: u64,
}

/// Reason why a case does not fit its host, or why that is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    /// The host is too small.
    #[error(transparent)]
    TooSmall(#[from] HostTooSmall),
    /// The available amount could not be read.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl Budget {
    fn new() -> Self {
        let permits = Arc::new(Semaphore::new((HOST_BUDGET / MIB) as usize));
        Self { permits, size: AtomicU64::new(HOST_BUDGET) }
    }

    /// Grows the budget for a host with this available amount, in bytes. The budget never shrinks.
    fn grow(&self, available: u64, available_per_budget: u64) {
        let target = available.saturating_sub(HOST_RESERVE) / available_per_budget;
        let before = self.size.fetch_max(target, Ordering::Relaxed);
        self.permits.add_permits((target.saturating_sub(before) / MIB) as usize);
    }

    /// Waits until the budget covers an amount in bytes; an amount that exceeds the budget takes
    /// all of it.
    async fn acquire(&self, amount: u64) -> Option<OwnedSemaphorePermit> {
        let takes = (amount.min(self.size.load(Ordering::Relaxed)) / MIB) as u32;
        self.permits.clone().acquire_many_owned(takes).await.ok()
    }
}

impl HostBudget {
    /// Creates the budgets of one host, or unlimited ones for nodes that are machines.
    pub(crate) fn new(one_host: bool) -> Self {
        Self { budgets: one_host.then(|| Budgets { memory: Budget::new(), disk: Budget::new() }) }
    }

    /// Grows the budgets for the host of a node. A budget stays at its minimum if the available
    /// amount cannot be read.
    pub(crate) async fn grow(&self, node: &Node) {
        let Some(Budgets { memory, disk }) = &self.budgets else { return };
        if let Ok(available) = node.host_memory().await {
            memory.grow(available, AVAILABLE_MEMORY_PER_BUDGET);
        }
        if let Ok(Some(available)) = node.backend().host_disk().await {
            disk.grow(available, AVAILABLE_DISK_PER_BUDGET);
        }
    }

    /// Waits until the budget covers a case's pressure on memory or disk. Dropping the permit
    /// returns the amount.
    pub(crate) async fn acquire(&self, pressure: &Pressure, ramp: &Ramp) -> Option<OwnedSemaphorePermit> {
        let Budgets { memory, disk } = self.budgets.as_ref()?;
        let budget = match pressure.signal {
            PressureSignal::MemoryAvailable => memory,
            PressureSignal::NodefsAvailable | PressureSignal::ImagefsAvailable => disk,
            PressureSignal::NodefsInodesFree
            | PressureSignal::ImagefsInodesFree
            | PressureSignal::PidAvailable => return None,
        };
        budget.acquire(ramp.case_total()).await
    }

    /// Checks that a case leaves the reserve to the host's memory or disk. The node reports both,
    /// because the Docker host may be another machine than this one.
    ///
    /// # Errors
    /// The host is too small, or its available amount could not be read.
    pub(crate) async fn check(&self, node: &Node, pressure: &Pressure, ramp: &Ramp) -> Result<(), HostError> {
        let (resource, available) = match pressure.signal {
            PressureSignal::MemoryAvailable => ("memory", node.host_memory().await?),
            PressureSignal::NodefsAvailable | PressureSignal::ImagefsAvailable => {
                let of_node = available(&node.settled_summary().await?, pressure.signal).unwrap_or(0);
                let of_host = node.backend().host_disk().await?;
                ("disk", of_node.min(of_host.unwrap_or(u64::MAX)))
            }
            // A few thousand inodes or process IDs do not affect the reserve, which is in bytes.
            PressureSignal::NodefsInodesFree
            | PressureSignal::ImagefsInodesFree
            | PressureSignal::PidAvailable => return Ok(()),
        };
        Ok(check_reserve(resource, available, ramp.case_total(), self.reserve(node))?)
    }

    /// Returns the reserve on the host of a node, in bytes. An external node with a machine of its
    /// own keeps the amount below its threshold and needs no other reserve.
    fn reserve(&self, node: &Node) -> u64 {
        if node.backend().external().is_some() && self.budgets.is_none() { 0 } else { HOST_RESERVE }
    }
}

fn check_reserve(
    resource: &'static str,
    available: u64,
    takes: u64,
    reserve: u64,
) -> Result<(), HostTooSmall> {
    let needs = takes + reserve;
    if available >= needs {
        return Ok(());
    }
    Err(HostTooSmall {
        resource,
        available: available / MIB,
        takes: takes / MIB,
        reserve: reserve / MIB,
        missing: (needs - available).div_ceil(MIB),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_budget_grows_with_the_host() {
        let budget = Budget::new();
        for (available, expected) in [(4096, 1280), (9216, 2048), (5000, 2048), (17408, 4096)] {
            budget.grow(available * MIB, AVAILABLE_MEMORY_PER_BUDGET);
            assert_eq!(budget.permits.available_permits(), expected, "{available}Mi");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cases_wait_for_the_budget_of_their_signal() {
        let host = HostBudget::new(true);
        let pressure =
            |signal: &str| -> Pressure { serde_saphyr::from_str(&format!("signal: {signal}")).unwrap() };
        let ramp = Ramp { step: 100 * MIB, pause: Duration::ZERO, steps: 8, unit: MIB, others: 0 };
        let acquire = async |signal: &str| {
            let pressure = pressure(signal);
            timeout(Duration::from_secs(1), host.acquire(&pressure, &ramp)).await
        };
        let first = acquire("nodefs.available").await.unwrap();
        assert!(acquire("nodefs.available").await.is_err(), "800 MiB of 1280 MiB are taken");
        assert!(acquire("memory.available").await.unwrap().is_some(), "memory has a budget of its own");
        drop(first);
        assert!(acquire("nodefs.available").await.unwrap().is_some());
        let machines = HostBudget::new(false);
        assert!(machines.acquire(&pressure("nodefs.available"), &ramp).await.is_none());
    }

    #[test]
    fn a_host_that_is_too_small_is_reported_with_numbers() {
        let check = |available| check_reserve("memory", available, 376 * MIB, HOST_RESERVE);
        assert!(check(1400 * MIB).is_ok());
        assert_eq!(
            check(1300 * MIB).unwrap_err().to_string(),
            "failed to reserve memory of the host: 1300Mi are available; the case takes 376Mi and leaves 1024Mi: 100Mi are missing"
        );
    }
}
