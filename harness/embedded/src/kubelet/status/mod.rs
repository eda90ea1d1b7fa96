//! Node status: node object, conditions, lease, images.

mod conditions;
mod images;
mod lease;
mod register;
mod update;

pub use images::Images;
pub use update::NodeStatus;
