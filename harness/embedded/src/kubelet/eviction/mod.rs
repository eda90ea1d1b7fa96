//! Eviction manager: its sync loop, the memory notifiers of cgroup v1, and the kills. [`manager`]
//! makes the decisions.
//!
//! The sync loop and each notifier are independent: each evaluates a Summary and then waits for the
//! end of the pod that it killed, while the others continue. Therefore one pod can be evicted twice
//! (`managerImpl.Start`).

mod admission;
mod limits;
mod log_message;
pub(crate) mod manager;
mod message;
mod metrics;
mod notifier;
mod ranking;
mod reclaim;
mod state;
mod sync_loop;
mod synchronize;

pub(crate) use state::Eviction;
