//! Selection of the cases of a run.

mod cases;
mod label_filter;
mod parse;
mod shard;

pub use cases::{SelectError, Selection, select, select_parsed};
pub use label_filter::LabelFilter;
pub use parse::LabelFilterError;
pub use shard::{Shard, ShardError};
