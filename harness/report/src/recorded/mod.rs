//! Runs read back from their directories.

mod error;
mod lines;
mod observations;
mod run;

pub use error::RecordedRunError;
pub(crate) use run::read_events;
pub use run::{RecordedRun, Unsuccessful, replay_recorded};
