//! The programs that processes run, each a model of its command line.

mod agnhost_stress;
mod copy;
mod dd;
mod dispatch;
mod evictlab_stress;
mod executable;
mod idle;
mod image;
mod size;
mod sleep;
mod step;

pub(super) use dispatch::Program;
pub use executable::unsupported_command;
pub(super) use idle::Idle;
pub(super) use size::parse_size;
pub(super) use step::{CommandLine, Footprint, SignalAction, StepOutcome};
