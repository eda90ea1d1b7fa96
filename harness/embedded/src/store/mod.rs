//! The objects: every version of the last while, as etcd keeps them.

mod feed;
mod kind;
mod objects;
mod past;

pub use feed::Feed;
pub use kind::{Kind, Scope};
pub use objects::{Change, ChangeKind, Store, TooOld, Trouble};
