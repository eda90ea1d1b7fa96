//! Search for the first kubelet whose verdict differs, with as few clusters as the version skew
//! allows.

mod candidate;
mod kubelet_verdicts;
mod render;
mod result;
mod search;
mod search_range;

pub use candidate::{BisectTerm, KubeletCandidate};
pub use kubelet_verdicts::KubeletVerdicts;
pub use render::render;
pub use result::BisectResult;
pub use search::{CandidateState, KubeletSearch, KubeletSearchOutcome, ProbeOutcome};
pub use search_range::{SearchRange, SearchRangeError};
