//! Images of a node: their lookup by pods, those that are stored, and garbage collection.

mod garbage_collection;
pub(in crate::kubelet) mod lookup;
mod store;

pub(crate) use store::{ImageDeletion, Images};
