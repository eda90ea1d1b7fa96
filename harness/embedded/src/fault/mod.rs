//! Active faults and their effects on requests, watches, events and statistics.

mod active;

pub use active::{ActiveFaults, EventDelivery, NodeFault, RequestOutcome, Scope, WatchEnd};
