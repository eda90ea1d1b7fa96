//! Active faults and their effects on requests, watches, events and statistics.

mod active;

pub use active::FaultScope;
pub(crate) use active::{ActiveFaults, EventDelivery, FaultNumber, NodeFault, RequestOutcome, WatchEnd};
