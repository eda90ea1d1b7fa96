//! Profiles: defaults of options from `evictlab.toml`.
//!
//! The values become the defaults of clap's arguments, so that the command line and environment
//! variables precede them, and the same parsers check them.

mod apply;
pub(crate) mod error;
mod file;
mod origin;
mod permitted;
mod schema;
mod settings;

pub(crate) use apply::{candidates, with_profile};
pub(crate) use file::FILE;
pub(crate) use origin::{place, removal};
pub(crate) use schema::profile_schema;
