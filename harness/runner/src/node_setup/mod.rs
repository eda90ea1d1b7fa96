//! Changes of a node for a case: images, memory limit, extended resources and static pods.

pub(crate) mod changes;
pub(crate) mod images;
