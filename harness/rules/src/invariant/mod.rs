//! Invariants: statements that hold for every eviction by every kubelet, whatever a case expects.
//!
//! [`check`] takes the [`EventEvidence`] on one Evicted event and returns a [`Finding`] for each
//! [`Invariant`] that applies. An invariant counts as violated only if the evidence disproves it.

mod catalogue;
mod check;
mod event;
mod history;
mod limits;
mod outcome;
mod pressure;

pub use catalogue::Invariant;
pub use check::check;
pub use event::{EvictedEvent, event_time, evicted_events};
pub use outcome::{EventEvidence, Finding, InvariantOutcome};
