//! Selection of the cases of a run.

mod label_filter;
mod parse;
mod selection;
mod shard;

pub use label_filter::LabelFilter;
pub use parse::LabelFilterError;
pub use selection::{SelectError, Selection, select, select_parsed};
pub use shard::{Shard, ShardError};
