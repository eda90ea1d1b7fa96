//! What holds for every eviction, on every kubelet, whatever a case expects.

mod check;
mod event;
mod history;
mod limits;
mod name;
mod pressure;
mod witnesses;

pub use check::{Evidence, Finding, Outcome, check};
pub use event::{EvictedEvent, evicted_events};
pub use name::Invariant;
