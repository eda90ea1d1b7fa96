//! Who is evicted first, and who is admitted while the node is under pressure.

mod admission;
mod rank;

pub use admission::{Applicant, rejection};
pub use rank::{Disks, Measure, Ranked, compare, measure, rank};
