//! Reasons why the evidence does not suffice for a verdict, each with the amounts behind it.

mod disk;
mod disk_reclaim;
mod killed_or_not_started;
mod missing_event;
mod missing_statistics;
mod pass_and_failure;
mod samples;
mod stale_disk_ranking;
mod stale_statistics;

pub(crate) use missing_event::{lost_event, specify};
pub(crate) use pass_and_failure::{Stall, end_not_reached, of_failure, of_pass, trigger_not_observed};
pub(crate) use stale_statistics::stale_pod_ranking;
