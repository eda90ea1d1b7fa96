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

pub use agnhost::agnhost_stress;
pub use consume::consume;
pub use lifetime::idle;
pub use pids::child;
