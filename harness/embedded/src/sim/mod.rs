//! Time, event queues, random numbers and notifications.

mod broadcast;
mod queue;
mod time;

pub use broadcast::{Broadcast, Subscription};
pub use queue::{EventQueue, Sequence, Slot};
pub use rand_chacha::ChaCha8Rng as Rng;
pub use time::{Epoch, Time};
