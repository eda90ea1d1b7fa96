//! Workloads: deployments, replica sets and jobs.

mod defaults;
mod job;
mod prepare;
mod validation;

pub(super) use prepare::{is_workload, prepare, prepare_update};
pub(super) use validation::validate;
