//! Channels from the store to watches.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::change::Change;

/// Changes of a kind, in one namespace or in all, for one receiver.
#[derive(Debug)]
pub(crate) struct WatchChannel {
    namespace: Option<String>,
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    changes: Vec<Change>,
    expired: bool,
}

impl WatchChannel {
    pub(super) fn new(namespace: Option<String>) -> Self {
        Self { namespace, pending: Mutex::default(), arrived: Notify::new() }
    }

    /// Sends a change of a namespace, if the channel covers the namespace.
    pub(super) fn send(&self, namespace: &str, change: &Change) {
        if self.namespace.as_ref().is_none_or(|watched| watched == namespace) {
            self.pending().changes.push(change.clone());
            self.arrived.notify_one();
        }
    }

    /// Drops pending and later changes.
    #[cfg(test)]
    pub(super) fn expire(&self) {
        self.pending().expired = true;
        self.arrived.notify_one();
    }

    /// Returns the changes since the last call, in order; `None` after the history was dropped.
    pub(crate) fn take(&self) -> Option<Vec<Change>> {
        let mut pending = self.pending();
        (!pending.expired).then(|| std::mem::take(&mut pending.changes))
    }

    /// Waits for changes. May return without any.
    pub(crate) async fn next(&self) {
        self.arrived.notified().await;
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
