//! Control plane besides the API server: scheduler and controllers.

mod bootstrap;
mod context;
mod disruption;
mod event_ttl;
mod garbage_collector;
mod manager;
mod namespaces;
mod node_lifecycle;
mod owners;
mod recorder;
mod scheduler;
mod taint_eviction;
mod taints;
#[cfg(test)]
mod tests;
mod workloads;

pub(crate) use manager::Controllers;
