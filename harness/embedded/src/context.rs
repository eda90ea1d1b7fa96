//! State of a simulation that its parts share.

use jiff::Timestamp;

use crate::fault::ActiveFaults;
use crate::sim::{Epoch, Rng, Sequence, SimTime};
use crate::storage::Store;

/// Shared state of a simulation at one moment.
pub struct SimContext<'a> {
    /// Current time.
    pub(crate) now: SimTime,
    /// Objects of the API.
    pub(crate) store: &'a mut Store,
    /// Source of all random numbers.
    pub(crate) rng: &'a mut Rng,
    /// Faults that are active.
    pub(crate) faults: &'a mut ActiveFaults,
    /// Order of events across queues.
    pub(crate) sequence: &'a mut Sequence,
}

impl SimContext<'_> {
    /// Returns the calendar time of the simulation's start.
    pub(crate) fn epoch(&self) -> Epoch {
        self.store.epoch
    }

    /// Returns the time at a date; the start of the simulation for an earlier one.
    pub fn time_at(&self, date: Timestamp) -> SimTime {
        SimTime::from_start(date.duration_since(self.epoch().0).try_into().unwrap_or_default())
    }
}
