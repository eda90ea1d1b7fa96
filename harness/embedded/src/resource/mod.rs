//! Parts of objects that several components read in the same way.

pub(crate) mod condition;
mod kind;
pub(crate) mod label_selector;
mod object;
pub(crate) mod scheduling;

pub use kind::{Kind, Scope};
pub(crate) use object::ObjectExt;
