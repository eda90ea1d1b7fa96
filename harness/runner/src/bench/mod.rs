//! The figures that evictlab should reach, measured now.

mod command;
mod embedded;
mod figure;
mod measure;
mod stopwatch;

pub use command::{CommandError, command_seconds};
pub use embedded::on_embedded;
pub use figure::{Figure, Unit};
pub use measure::{Bench, BenchError, figures, pair};
