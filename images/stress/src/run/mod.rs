//! Doing it.

mod disk;
mod folder;
mod inodes;
mod logs;
mod memory;
mod noise;
mod page_cache;
mod pids;
mod signals;
mod stay;
mod stress;
mod take;
mod tell;

pub use pids::child;
pub use stay::idle;
pub use stress::stress;
pub use take::take;
