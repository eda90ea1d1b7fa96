//! Watching a case on its node: the evidence.

mod observations;

pub use observations::Observations;
