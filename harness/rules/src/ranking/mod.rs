//! Who is evicted first, and who is admitted while the node is under pressure.

mod admission;
mod rank;

pub use admission::{Applicant, admit};
pub use rank::{Disks, Ranked, rank};
