//! State of a simulation that its parts share.

use crate::fault::ActiveFaults;
use crate::sim::{Epoch, Rng, Sequence, Time};
use crate::storage::Store;

/// Shared state of a simulation at one moment.
pub struct SimContext<'a> {
    /// Current time.
    pub now: Time,
    /// Objects of the API.
    pub store: &'a mut Store,
    /// Source of all random numbers.
    pub rng: &'a mut Rng,
    /// Faults that are active.
    pub faults: &'a mut ActiveFaults,
    /// Order of events across queues.
    pub sequence: &'a mut Sequence,
}

impl SimContext<'_> {
    /// Returns the calendar time of the simulation's start.
    pub fn epoch(&self) -> Epoch {
        self.store.epoch
    }
}
