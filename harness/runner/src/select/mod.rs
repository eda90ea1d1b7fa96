//! From case files to the cases of a run.

mod cases;
mod label_filter;
mod parse;

pub use cases::{SelectError, Selection, select};
pub use label_filter::LabelFilter;
pub use parse::LabelFilterError;
