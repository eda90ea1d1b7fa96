//! Measurements of a cgroup in cAdvisor.

use std::time::Duration;

use crate::machine::{Cgroup, Machine, MemoryUse};
use crate::sim::SimTime;

/// Maximum interval between two measurements, before the jitter (`maxHousekeepingInterval`).
const SLOWEST: Duration = Duration::from_secs(15);

/// Measurement of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub at: SimTime,
    pub memory: MemoryUse,
    pub cpu: Duration,
    pub processes: u64,
}

/// Cgroup with its last two measurements.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Time of registration.
    pub since: SimTime,
    pub last: Option<Measured>,
    before: Option<Measured>,
    /// Current interval, which doubles while nothing changes.
    pub interval: Duration,
    usual: Duration,
    /// Time of the next measurement.
    pub next: SimTime,
}

impl Group {
    pub(super) fn new(since: SimTime, usual: Duration) -> Self {
        Self { since, last: None, before: None, interval: usual, usual, next: since }
    }

    /// Adds a measurement. The interval doubles if it equals the last one, otherwise it is reset
    /// (`containerData.nextHousekeepingInterval`).
    pub(super) fn measure(&mut self, group: &Cgroup, memory: MemoryUse, machine: &Machine, at: SimTime) {
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

    /// Returns the CPU usage between the last two measurements, in nanocores.
    pub(super) fn nano_cores(&self) -> Option<u64> {
        let (last, before) = (self.last?, self.before?);
        let wall = last.at.since(before.at).as_nanos().max(1);
        let cpu = last.cpu.saturating_sub(before.cpu).as_nanos();
        Some(u64::try_from(cpu * 1_000_000_000 / wall).unwrap_or(u64::MAX))
    }

    /// Returns whether the Summary uses cAdvisor's statistics of a container
    /// (`isContainerTerminated`): it has two measurements, and CPU usage or memory.
    pub(super) fn is_alive(&self) -> bool {
        let rss = self.last.map_or(0, |last| last.memory.rss);
        self.nano_cores().is_some_and(|cores| cores > 0 || rss > 0)
    }
}
