//! The stress image: evictlab's own test program, which is built into releases or from the source
//! tree.

mod build;
mod cargo;
mod error;
mod load;
mod program;

pub use build::{build, source_tree};
pub use cargo::CargoOutput;
pub use error::{BuildError, LoadError};
pub use load::load;
pub use program::{NAME, StressProgram, architecture};
