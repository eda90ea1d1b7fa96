//! Leases, by which runs in an existing cluster show that they are active and hold their nodes.

mod lease;
mod moment;
mod server_clock;

pub use lease::RunLease;
pub(crate) use lease::{LEASE_DURATION, LeaseRecord, active_runs, list_leases};
pub(crate) use server_clock::ServerClock;
