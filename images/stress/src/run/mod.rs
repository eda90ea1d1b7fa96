//! Consumes real resources.

mod agnhost;
mod consume;
mod consumer;
mod directory;
mod files;
mod lifetime;
mod logs;
mod memory;
mod pids;
mod random;

pub(crate) use agnhost::agnhost_stress;
pub(crate) use consume::consume;
pub(crate) use lifetime::idle;
pub(crate) use pids::child;
