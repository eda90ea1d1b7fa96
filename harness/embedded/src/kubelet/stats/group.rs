//! A control group as cAdvisor remembers it.

use std::time::Duration;

use crate::machine::{Cgroup, Machine, MemoryUse};
use crate::time::Time;

/// cAdvisor never waits longer than so between two measurements, but for the jitter: the kubelet hands it this as
/// `maxHousekeepingInterval`.
const SLOWEST: Duration = Duration::from_secs(15);

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub at: Time,
    pub memory: MemoryUse,
    pub cpu: Duration,
    pub processes: u64,
}

/// A group with its last two measurements.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// When it was noticed.
    pub since: Time,
    pub last: Option<Measured>,
    before: Option<Measured>,
    /// The interval as it is stretched while nothing changes.
    pub interval: Duration,
    usual: Duration,
    /// When it is measured next.
    pub next: Time,
}

impl Group {
    pub(super) fn new(since: Time, usual: Duration) -> Self {
        Self { since, last: None, before: None, interval: usual, usual, next: since }
    }

    /// Takes a measurement; the interval doubles if it equals the one before, and else is the usual one again
    /// (`containerData.nextHousekeepingInterval`).
    pub(super) fn measure(&mut self, group: &Cgroup, memory: MemoryUse, machine: &Machine, at: Time) {
        let processes = match group {
            Cgroup::Container(_) => machine.processes(group),
            _ => 0,
        };
        let measured = Measured { at, memory, cpu: machine.cpu(group), processes };
        self.before = self.last.replace(measured);
        if let Some(before) = self.before {
            let same = Measured { at, ..before } == measured;
            self.interval = if same { (self.interval * 2).min(SLOWEST.max(self.usual)) } else { self.usual };
        }
    }

    /// Billionths of a processor between the last two measurements.
    pub(super) fn nano_cores(&self) -> Option<u64> {
        let (last, before) = (self.last?, self.before?);
        let wall = last.at.since(before.at).as_nanos().max(1);
        let cpu = last.cpu.saturating_sub(before.cpu).as_nanos();
        Some(u64::try_from(cpu * 1_000_000_000 / wall).unwrap_or(u64::MAX))
    }

    /// Whether the Summary takes this for the container's figures (`isContainerTerminated`): there are two measurements, and it is not
    /// without both processor time and memory.
    pub(super) fn is_alive(&self) -> bool {
        let rss = self.last.map_or(0, |last| last.memory.rss);
        self.nano_cores().is_some_and(|cores| cores > 0 || rss > 0)
    }
}
