//! The stress image: evictlab's own test program, which is built into releases or from the source
//! tree.

mod cargo;
mod compile;
mod error;
mod load;
mod program;

pub use cargo::CargoOutput;
pub use compile::{build, source_tree};
pub use error::{BuildError, LoadError};
pub use load::load;
pub use program::{NAME, StressProgram, architecture};
