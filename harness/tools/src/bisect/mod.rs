//! Search for the first kubelet whose verdict differs, with as few clusters as the version skew
//! allows.

mod candidate;
mod render;
mod result;
mod search;
mod search_range;
mod verdict_observer;

pub use candidate::{Candidate, Standing};
pub use render::render;
pub use result::BisectResult;
pub use search::{CandidateState, Outcome, ProbeOutcome, Search};
pub use search_range::{OrderError, SearchRange, ordered};
pub use verdict_observer::VerdictObserver;
