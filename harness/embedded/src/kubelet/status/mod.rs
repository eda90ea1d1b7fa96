//! Node status: node object, conditions, lease, images.

mod conditions;
mod images;
mod lease;
mod node_status;
mod register;
mod update;

pub(crate) use node_status::NodeStatus;
