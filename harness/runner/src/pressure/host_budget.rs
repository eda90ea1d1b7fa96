//! Limits that keep the host of the nodes from running out of memory or disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evictlab_case::{Pressure, Signal};
use evictlab_cluster::{Node, NodeError};
use evictlab_rules::quantity::MIB;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::pressure::ramp::Ramp;
use crate::pressure::signal_status::available;

/// Memory and disk that cases leave to the host, in bytes.
pub const HOST_MEMORY_RESERVE: u64 = 1024 * MIB;
/// Memory of the host that all running cases may take together, in bytes. On a large host the
/// budget grows to a part of the available memory.
pub const HOST_MEMORY_BUDGET: u64 = 1280 * MIB;
/// Divisor of a large host's available memory that results in its budget.
const AVAILABLE_PER_BUDGET: u64 = 4;

/// Memory budget of the running cases on the host that all nodes share.
pub(crate) struct HostBudget {
    /// One permit per MiB; `None` if every node has memory of its own.
    permits: Option<Arc<Semaphore>>,
    /// Size of the budget, in bytes.
    size: AtomicU64,
}

/// The host has less available than a case takes and leaves.
#[derive(Debug, thiserror::Error)]
#[error(
    "the host has {available}Mi of {resource} available; the case takes {takes}Mi and leaves {reserve}Mi: \
     {missing}Mi are missing"
)]
pub(crate) struct HostTooSmall {
    resource: &'static str,
    available: u64,
    takes: u64,
    reserve: u64,
    missing: u64,
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

impl HostBudget {
    /// Creates the budget of one host, or an unlimited one for nodes with memory of their own.
    pub(crate) fn new(one_host: bool) -> Self {
        let permits = one_host.then(|| Arc::new(Semaphore::new((HOST_MEMORY_BUDGET / MIB) as usize)));
        Self { permits, size: AtomicU64::new(HOST_MEMORY_BUDGET) }
    }

    /// Grows the budget for a host with this available memory, in bytes. The budget never shrinks.
    pub(crate) fn grow(&self, available: u64) {
        let Some(permits) = &self.permits else { return };
        let target = available.saturating_sub(HOST_MEMORY_RESERVE) / AVAILABLE_PER_BUDGET;
        let before = self.size.fetch_max(target, Ordering::Relaxed);
        permits.add_permits((target.saturating_sub(before) / MIB) as usize);
    }

    /// Waits until the budget covers a case's memory pressure. Dropping the permit returns the
    /// memory.
    pub(crate) async fn acquire(&self, pressure: &Pressure, ramp: &Ramp) -> Option<OwnedSemaphorePermit> {
        if pressure.signal != Signal::MemoryAvailable {
            return None;
        }
        // A case that exceeds the budget takes all of it.
        let takes = (ramp.case_total().min(self.size.load(Ordering::Relaxed)) / MIB) as u32;
        self.permits.clone()?.acquire_many_owned(takes).await.ok()
    }

    /// Checks that a case leaves the reserve to the host's memory or disk. The node reports both,
    /// because the Docker host may be another machine than this one.
    ///
    /// # Errors
    /// The host is too small, or its available amount could not be read.
    pub(crate) async fn check(&self, node: &Node, pressure: &Pressure, ramp: &Ramp) -> Result<(), HostError> {
        let (resource, available) = match pressure.signal {
            Signal::MemoryAvailable => ("memory", node.host_memory().await?),
            Signal::NodefsAvailable => {
                ("disk", available(&node.settled_summary().await?, pressure.signal).unwrap_or(0))
            }
            // A few thousand inodes or process ids do not affect the reserve, which is in bytes.
            Signal::NodefsInodesFree | Signal::PidAvailable => return Ok(()),
        };
        Ok(check_reserve(resource, available, ramp.case_total(), self.reserve(node))?)
    }

    /// Returns the reserve on the host of a node, in bytes. An external node with a machine of its
    /// own keeps the amount below its threshold and needs no other reserve.
    fn reserve(&self, node: &Node) -> u64 {
        if node.backend().external().is_some() && self.permits.is_none() { 0 } else { HOST_MEMORY_RESERVE }
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
    use super::*;

    #[test]
    fn the_budget_grows_with_the_host() {
        let permits = |host: &HostBudget| host.permits.as_ref().map(|permits| permits.available_permits());
        let host = HostBudget::new(true);
        for (available, expected) in [(4096, 1280), (9216, 2048), (5000, 2048), (17408, 4096)] {
            host.grow(available * MIB);
            assert_eq!(permits(&host), Some(expected), "{available}Mi");
        }
        let unlimited = HostBudget::new(false);
        unlimited.grow(u64::MAX);
        assert_eq!(permits(&unlimited), None);
    }

    #[test]
    fn a_host_that_is_too_small_is_reported_with_numbers() {
        let check = |available| check_reserve("memory", available, 376 * MIB, HOST_MEMORY_RESERVE);
        assert!(check(1400 * MIB).is_ok());
        assert_eq!(
            check(1300 * MIB).unwrap_err().to_string(),
            "the host has 1300Mi of memory available; the case takes 376Mi and leaves 1024Mi: 100Mi are missing"
        );
    }
}
