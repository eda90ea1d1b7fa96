//! Loading of suites.

mod case_file;
mod case_files;
mod in_parallel;
mod parsed_case;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use case_file::is_named;
pub(crate) use case_files::sort_key;
pub use case_files::{CaseFiles, duplicate_names, load, load_paths, parse};
pub use parsed_case::{LoadedCase, ParsedCase};
pub use source::{BuiltInCase, SCHEMA_FILE, Source};
