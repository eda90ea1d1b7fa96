//! Scheduler: assigns pods to nodes.
//!
//! Implemented plugins: node unschedulable, taint toleration, node affinity and node selector,
//! resource fit, least allocated, default preemption. Not implemented: scheduling gates, pod
//! affinity, topology spread, ports, volumes, extenders.

mod cycle;
mod filter;
mod nodes;
mod preemption;
#[cfg(test)]
mod tests;

pub(super) use cycle::Scheduler;
