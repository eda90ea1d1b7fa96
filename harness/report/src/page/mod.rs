//! The HTML page of a run.

mod cell;
mod document;
mod matrix;
mod rendered;
mod verdict;

pub(crate) use document::STYLE;
pub use document::{html_document, page};
