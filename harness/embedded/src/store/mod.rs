//! The objects: every version of the last while, as etcd keeps them.

mod kind;
mod objects;
mod past;

pub use kind::{Kind, Scope};
pub use objects::{Change, ChangeKind, Store, TooOld, Trouble};
