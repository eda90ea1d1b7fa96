//! Leases, by which runs in an existing cluster show that they are active and hold their nodes.

mod lease;
mod moment;
mod server_clock;

pub(crate) use lease::{LEASE_DURATION, LeaseRecord, active_runs, list_leases};
pub use lease::{LeaseLost, RunLease};
pub(crate) use server_clock::ServerClock;
