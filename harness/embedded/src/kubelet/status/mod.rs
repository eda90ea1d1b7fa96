//! Node status: node object, conditions, lease.

mod conditions;
mod lease;
mod node_status;
mod register;
mod update;

pub(crate) use node_status::NodeStatusUpdates;
