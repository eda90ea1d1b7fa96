//! The HTML page of a run, and the frame of all HTML pages.

mod case_section;
mod document;
mod evidence_links;
mod matrix;
mod overview;
mod rendered;
mod shell;
mod verdict;

pub use document::page;
pub use evidence_links::EvidenceBase;
#[cfg(test)]
pub(crate) use shell::SCRIPT;
pub use shell::{html_document, markdown_page, search_field};
