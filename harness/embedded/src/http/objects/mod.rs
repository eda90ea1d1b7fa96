//! Verbs of stored objects.

mod delete;
mod endpoint;
mod patch;
mod watch;
mod write;

pub(crate) use delete::{delete, delete_collection};
pub(crate) use endpoint::{Endpoint, get, list};
pub(crate) use patch::patch;
pub(crate) use watch::watch;
pub(crate) use write::{create, evict, update};
