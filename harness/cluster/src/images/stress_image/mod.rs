//! The stress image: evictlab's own test program, embedded in releases, or built from the source
//! tree.

mod build;
mod built;
mod cargo;
mod embedded;
mod error;
mod load;

pub use build::{build, source_tree};
pub use built::{Built, NAME, architecture};
pub use cargo::CargoOutput;
pub use embedded::{embedded, embedded_architectures};
pub use error::{BuildError, LoadError};
pub use load::load;
