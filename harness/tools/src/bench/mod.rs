//! Measures the performance targets of evictlab.

mod command;
mod embedded;
mod figure;
mod kind;
mod run_timer;

pub use command::{CommandError, command_seconds};
pub use embedded::measure_embedded;
pub use figure::{Figure, Unit};
pub use kind::{BenchError, KindBench, newest_pair};
