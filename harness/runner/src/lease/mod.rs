//! Use of a node by cases: exclusivity, state between two cases, and the policy of external nodes.

pub(crate) mod exclusivity;
pub(crate) mod leased_node;
pub(crate) mod node_policy;
pub(crate) mod pod_bounds;
pub(crate) mod pressure_permits;
pub(crate) mod privilege;
mod room_budget;
pub(crate) mod slowdown;
