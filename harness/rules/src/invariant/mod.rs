//! Invariants: statements that hold for every eviction by every kubelet, whatever a case expects.
//!
//! [`check`] takes the [`EventEvidence`] on one Evicted event and returns a [`Finding`] for each
//! [`Invariant`] that applies. An invariant counts as violated only if the evidence disproves it.

mod catalog;
mod check;
mod evidence;
mod history;
mod limits;
mod outcome;
mod pressure;

pub use catalog::Invariant;
pub use check::check;
pub use evidence::EventEvidence;
pub use outcome::{Finding, InvariantOutcome};
