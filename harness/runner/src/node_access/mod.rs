//! Use of the nodes of a run by its cases: one case after the other or several at once, what they
//! may do to a node, and its state between them.

pub(crate) mod exclusivity;
pub(crate) mod node_policy;
pub(crate) mod pod_bounds;
pub(crate) mod pressure_permits;
pub(crate) mod privilege;
pub(crate) mod room_budget;
pub(crate) mod run_node;
pub(crate) mod slowdown;
pub(crate) mod steady_statistics;
