//! The stress image: evictlab's own test program, built from the source tree.

mod archive;
mod build;
mod cargo;
mod error;
mod load;

pub use archive::{Archive, Built, NAME, architecture};
pub use build::{build, source_tree};
pub use cargo::CargoOutput;
pub use error::{BuildError, LoadError};
pub use load::load;
