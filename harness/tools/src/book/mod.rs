//! The documentation as an mdBook: the pages of `harness/guides`, the manuals of other folders, and
//! generated pages for the commands and the cases.

mod assemble;
mod catalogue;
mod links;

pub use assemble::{Book, BookError, Command};
pub use catalogue::Verdicts;
