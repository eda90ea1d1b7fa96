//! The documents in JSON or YAML that evictlab writes or reads, with their schemas and keys.

mod keys;
mod list;

pub use keys::{Key, Section, sections};
pub use list::{DOCUMENTS, Document, FORMAT_VERSION};
