//! The documentation as an mdBook: the pages of `harness/guides`, the manuals of other folders, and
//! generated pages for the commands, the documents in JSON and the cases.

mod assemble;
mod catalogue;
mod document_page;
mod links;
mod real_verdicts;

pub use assemble::{Book, BookError, Command};
pub use catalogue::{Verdicts, VersionVerdict};
pub use real_verdicts::real_verdicts;
