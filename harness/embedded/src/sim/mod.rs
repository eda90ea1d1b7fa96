//! Time, event queues and random numbers.

mod queue;
mod time;

pub(crate) use queue::{EventQueue, Sequence, Slot};
pub(crate) use rand_chacha::ChaCha8Rng as Rng;
pub(crate) use time::Epoch;
pub use time::SimTime;
