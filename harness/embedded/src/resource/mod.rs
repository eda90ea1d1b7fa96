//! Parts of objects that several components read in the same way.

pub(crate) mod condition;
pub(crate) mod container_status;
mod event;
mod kind;
pub(crate) mod label_selector;
mod object;
pub(crate) mod scheduling;

pub(crate) use container_status::ContainerStatusExt;
pub(crate) use event::EventBody;
pub use kind::{Kind, Scope};
pub(crate) use object::ObjectExt;
