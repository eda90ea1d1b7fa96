//! The host under the nodes: it is never driven out of memory or disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::case::{Pressure, Signal};
use crate::cluster::{Node, NodeError};
use crate::stage::{Ramp, Supply};

const MIB: u64 = 1024 * 1024;
/// What the host keeps, whatever the cases take, in bytes.
pub const RESERVE: u64 = 1024 * MIB;
/// What all cases together may take of the host's memory at a time, in bytes; of a large host more.
pub const BUDGET: u64 = 1280 * MIB;
/// The part of a large host's available memory that they may take.
const PART: u64 = 4;

/// The memory that running cases may take together of the host that all nodes share.
pub struct Host {
    budget: Option<Arc<Semaphore>>,
    /// What the budget is, in bytes.
    size: AtomicU64,
}

/// A host that cannot take a case.
#[derive(Debug, thiserror::Error)]
#[error(
    "the host has {available}Mi of {what} available, and the case takes {takes}Mi and leaves {reserve}Mi: {short}Mi are missing"
)]
pub struct TooSmall {
    what: &'static str,
    available: u64,
    takes: u64,
    reserve: u64,
    short: u64,
}

impl Host {
    /// One host of which cases take no more than their budget, or nodes with memory of their own, where every case takes what it needs.
    pub fn new(one_host: bool) -> Self {
        let budget = one_host.then(|| Arc::new(Semaphore::new((BUDGET / MIB) as usize)));
        Self { budget, size: AtomicU64::new(BUDGET) }
    }

    /// Lets cases take more of a host that has so much available, in bytes. It never gets less.
    pub fn has(&self, available: u64) {
        let Some(budget) = &self.budget else { return };
        let wanted = available.saturating_sub(RESERVE) / PART;
        let before = self.size.fetch_max(wanted, Ordering::Relaxed);
        budget.add_permits((wanted.saturating_sub(before) / MIB) as usize);
    }

    /// Waits until the budget has room for a case's pressure on memory; the room is given back when the permit is dropped.
    pub async fn room(&self, pressure: &Pressure, ramp: &Ramp) -> Option<OwnedSemaphorePermit> {
        if pressure.signal != Signal::MemoryAvailable {
            return None;
        }
        // A case larger than the budget has all of it.
        let takes = (ramp.takes().min(self.size.load(Ordering::Relaxed)) / MIB) as u32;
        self.budget.clone()?.acquire_many_owned(takes).await.ok()
    }
}

impl Host {
    /// Refuses a case that would leave the host, or its disk, with less than the reserve. Asked through the node: the Docker host may be
    /// another machine than this one.
    pub async fn fits(
        &self,
        node: &Node,
        pressure: &Pressure,
        ramp: &Ramp,
    ) -> Result<Result<(), TooSmall>, NodeError> {
        let (what, available) = match pressure.signal {
            Signal::MemoryAvailable => ("memory", node.host_memory().await?),
            Signal::NodefsAvailable => {
                ("disk", available(&node.settled_summary().await?, pressure.signal).unwrap_or(0))
            }
            // Some thousand inodes or processes; what the host keeps is counted in bytes.
            Signal::NodefsInodesFree | Signal::PidAvailable => return Ok(Ok(())),
        };
        Ok(enough(what, available, ramp.takes(), self.reserve(node)))
    }

    /// What stays. A borrowed node that has its machine for itself keeps what its own threshold leaves it.
    fn reserve(&self, node: &Node) -> u64 {
        if node.machine().borrowed().is_some() && self.budget.is_none() { 0 } else { RESERVE }
    }
}

fn enough(what: &'static str, available: u64, takes: u64, reserve: u64) -> Result<(), TooSmall> {
    let needs = takes + reserve;
    if available >= needs {
        return Ok(());
    }
    let mib = |bytes: u64| bytes / MIB;
    Err(TooSmall {
        what,
        available: mib(available),
        takes: mib(takes),
        reserve: mib(reserve),
        short: (needs - available).div_ceil(MIB),
    })
}

/// What a node has of a signal, in bytes, inodes or processes, by its Summary.
pub fn available(summary: &serde_json::Value, signal: Signal) -> Option<u64> {
    let node = &summary["node"];
    match signal {
        Signal::MemoryAvailable => node["memory"]["availableBytes"].as_u64(),
        Signal::NodefsAvailable => node["fs"]["availableBytes"].as_u64(),
        Signal::NodefsInodesFree => node["fs"]["inodesFree"].as_u64(),
        Signal::PidAvailable => {
            let rlimit = &node["rlimit"];
            rlimit["maxpid"].as_u64()?.checked_sub(rlimit["curproc"].as_u64()?)
        }
    }
}

/// What a node has of a signal and all there is, by its Summary; nothing of what that does not tell.
pub fn supply(summary: &serde_json::Value, signal: Signal) -> Supply {
    let node = &summary["node"];
    let available = available(summary, signal).unwrap_or(0);
    let bytes = |memory: &serde_json::Value| memory["workingSetBytes"].as_u64().unwrap_or(0);
    let capacity = match signal {
        Signal::MemoryAvailable => available + bytes(&node["memory"]),
        Signal::NodefsAvailable => node["fs"]["capacityBytes"].as_u64().unwrap_or(0),
        Signal::NodefsInodesFree => node["fs"]["inodes"].as_u64().unwrap_or(0),
        Signal::PidAvailable => node["rlimit"]["maxpid"].as_u64().unwrap_or(0),
    };
    let mut groups = node["systemContainers"].as_array().into_iter().flatten();
    let pods = groups.find(|group| group["name"] == "pods").filter(|_| signal == Signal::MemoryAvailable);
    Supply { available, capacity, of_pods: pods.map_or(0, |pods| bytes(&pods["memory"])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_host_lets_more_cases_run_at_a_time() {
        let permits = |host: &Host| host.budget.as_ref().map(|budget| budget.available_permits());
        let host = Host::new(true);
        for (available, expected) in [(4096, 1280), (9216, 2048), (5000, 2048), (17408, 4096)] {
            host.has(available * MIB);
            assert_eq!(permits(&host), Some(expected), "{available}Mi");
        }
        let own = Host::new(false);
        own.has(u64::MAX);
        assert_eq!(permits(&own), None);
    }

    #[test]
    fn a_host_that_is_too_small_is_told_with_the_numbers() {
        assert!(enough("memory", 1400 * MIB, 376 * MIB, RESERVE).is_ok());
        let error = enough("memory", 1300 * MIB, 376 * MIB, RESERVE).unwrap_err().to_string();
        assert_eq!(
            error,
            "the host has 1300Mi of memory available, and the case takes 376Mi and leaves 1024Mi: 100Mi are missing"
        );
    }
}
