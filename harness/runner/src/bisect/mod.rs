//! Which kubelet was the first whose verdict differs: candidates from old to new, tried by as few clusters as the version skew allows.

mod answers;
mod candidate;
mod order;
mod search;
mod tell;

pub use answers::Answers;
pub use candidate::{Candidate, Standing};
pub use order::{Course, OrderError, ordered};
pub use search::{Answer, Known, Outcome, Search};
pub use tell::tell;
