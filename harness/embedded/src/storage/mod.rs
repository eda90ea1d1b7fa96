//! Objects and their history, as etcd keeps them.

mod change;
mod history;
mod store;
mod watch_channel;

pub use change::{Change, ChangeKind};
pub use store::{ResourceExpired, Store, StoreError};
pub use watch_channel::WatchChannel;
