//! Measures the performance targets of evictlab.

mod command;
mod embedded;
mod figure;
mod generated_cluster;
mod kind;
mod process;
mod run_timer;
mod sizes;

pub use command::{CommandError, command_seconds};
pub use embedded::measure_embedded;
pub use figure::{Figure, FigureResult, GrowthPoint, Target, Unit};
pub use kind::{BenchError, KindBench, newest_pair};
pub use process::MeasuredProgram;
pub use sizes::measure_sizes;
