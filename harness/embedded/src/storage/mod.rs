//! Objects and their last changes, as etcd keeps them.

mod change;
mod index;
mod store;
mod watch_channel;

pub(crate) use change::{ObjectChange, WatchEventType};
pub(crate) use store::{SAFE_LETTERS, Store, StoreError};
pub(crate) use watch_channel::{WatchChannel, WatchEnd};
