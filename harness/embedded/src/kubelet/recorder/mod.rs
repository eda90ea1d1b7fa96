//! Event recorder: correlates events and delivers them to the API server.
//!
//! As in client-go's `tools/record`, similar events are combined, equal ones counted, and too many
//! about one object dropped. The remaining events are sent one after another; faults of the script
//! can affect each of them.

mod record;
mod state;
#[cfg(test)]
mod tests;

pub(super) use state::PendingEvent;
pub(crate) use state::{EventObject, Recorder};
