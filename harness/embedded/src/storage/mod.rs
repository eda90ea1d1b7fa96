//! Objects and their last changes, as etcd keeps them.

mod change;
mod index;
mod store;
mod watch_channel;

pub use change::{Change, ChangeKind};
pub use store::{ResourceExpired, Store, StoreError};
pub use watch_channel::WatchChannel;
