//! Workload controllers: Deployments, ReplicaSets and Jobs.
//!
//! The real controllers have a work queue each; the model has one, in order of time.

mod deployment;
mod job;
mod pods;
mod queue;
mod replica_set;
#[cfg(test)]
mod tests;
mod workload_spec;

pub(super) use queue::Workloads;
