//! Leases, by which runs in an existing cluster show that they are active and hold their nodes.

mod dead_runs;
mod lease;
mod moment;
mod record;
mod server_clock;

pub use lease::{LeaseLost, RunLease};
pub(crate) use record::{LEASE_DURATION, LeaseRecord, active_runs, list_leases};
pub(crate) use server_clock::ServerClock;
