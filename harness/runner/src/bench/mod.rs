//! The figures that a run on kind should reach, measured now.

mod command;
mod figure;
mod measure;
mod stopwatch;

pub use command::{CommandError, command_seconds};
pub use figure::{Figure, Unit};
pub use measure::{Bench, BenchError, figures, pair};
