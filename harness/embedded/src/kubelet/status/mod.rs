//! Node status: node object, conditions, lease, images.

mod conditions;
mod image_gc;
mod images;
mod lease;
mod node_status;
mod register;
mod update;

pub(crate) use images::ImageDeletion;
pub(crate) use node_status::NodeStatusUpdates;
