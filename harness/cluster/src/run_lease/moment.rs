//! Time that no user can set: a Lease neither expires nor stays alive because the clock of its host
//! was changed.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// The clock that also counts while the machine sleeps.
#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

/// A point in time, by the clock of the runtime, which tests advance, and by that of the machine,
/// which counts sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    runtime: Instant,
    since_boot: Duration,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { runtime: Instant::now(), since_boot: since_boot() }
    }

    /// Returns the time since then, by the clock that shows more of it.
    pub(super) fn elapsed(self) -> Duration {
        self.runtime.elapsed().max(since_boot().saturating_sub(self.since_boot))
    }
}

fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(SINCE_BOOT)).unwrap_or_default()
}
