//! The programs that processes run, each a model of its command line.

mod agnhost_stress;
mod copy;
mod dd;
mod evictlab_stress;
mod executable;
mod idle;
mod image;
mod message;
mod sleep;

pub use executable::unsupported_command;
pub(super) use executable::{load, load_command, load_container};
