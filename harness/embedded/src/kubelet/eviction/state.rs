//! State of the eviction manager: its loops and notifiers.

use std::collections::VecDeque;

use evictlab_rules::quantity::Quantity;
use evictlab_rules::summary::MemoryStats;
use evictlab_rules::threshold::{Signal, Threshold};

use super::manager::{Manager, Victim};
use super::metrics::EvictionMetrics;
use crate::kubelet::pods::ActivePod;
use crate::machine::Cgroup;
use crate::sim::SimTime;

/// State of the eviction manager.
#[derive(Clone, Debug, Default)]
pub(crate) struct Eviction {
    pub(super) manager: Option<Manager>,
    /// Loops: the sync loop, then one per notifier.
    pub(super) loops: Vec<SyncLoop>,
    pub(super) notifiers: Vec<Notifier>,
    /// Time at which the notifiers were last armed.
    pub(super) armed: Option<SimTime>,
    /// Metrics of evictions and preemptions.
    pub metrics: EvictionMetrics,
}

/// Index of the sync loop.
pub(super) const SYNC_LOOP: usize = 0;

/// Pod to evict.
#[derive(Clone, Debug)]
pub(super) struct PlannedEviction {
    pub pod: ActivePod,
    pub victim: Victim,
}

/// Activity of a loop.
#[derive(Clone, Debug, Default)]
pub(super) enum Work {
    /// Sleeps, or is about to evaluate.
    #[default]
    Resting,
    /// Waits for the end of a pod's containers.
    Killing(Box<Killing>),
    /// Waits for the cleanup of evicted pods.
    CleaningUp { pods: Vec<ActivePod>, until: SimTime },
}

/// Evictions of a pass, one after another.
#[derive(Clone, Debug)]
pub(super) struct Killing {
    pub(super) now: PlannedEviction,
    pub(super) since: SimTime,
    pub(super) next: VecDeque<PlannedEviction>,
    pub(super) done: Vec<ActivePod>,
}

/// Loop, with the time of its next pass.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncLoop {
    pub work: Work,
    pub due: Option<SimTime>,
}

/// Notifier of a memory threshold. The index of its loop is its own index plus one.
#[derive(Clone, Debug)]
pub(super) struct Notifier {
    pub(super) threshold: Threshold,
    pub(super) group: Cgroup,
    /// Usage at which the kernel notifies, in bytes.
    pub(super) mark: u64,
    /// Notifications that arrived during a pass, at most two: the notifier holds one, and the
    /// kernel's `eventfd` counts all others as one.
    pub(super) pending: u8,
}

impl Notifier {
    pub(super) fn name(&self) -> &'static str {
        match (self.threshold.grace.is_some(), self.threshold.signal) {
            (true, _) => "soft memory eviction threshold",
            (false, Signal::AllocatableMemoryAvailable) => "hard allocatable memory eviction threshold",
            (false, _) => "hard memory eviction threshold",
        }
    }

    /// Returns the usage at which the working set reaches the threshold: capacity − threshold +
    /// inactive cache.
    pub(super) fn mark(&self, memory: &MemoryStats, usage: u64) -> Option<u64> {
        let capacity = memory.capacity()?;
        let threshold = self.threshold.value.resolve(Some(&Quantity::from_bytes(capacity)))?.value();
        let inactive = i64::try_from(usage).ok()? - memory.working_set_bytes?;
        u64::try_from(capacity - threshold + inactive).ok()
    }
}
