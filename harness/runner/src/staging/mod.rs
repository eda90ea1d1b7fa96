//! Preparation of a node for a case: images, memory limit, extended resources and static pods.

pub(crate) mod images;
pub(crate) mod node_setup;
