//! Channels from the store to watches.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::change::ObjectChange;

/// Maximum number of pending changes. A slower receiver must list again.
const MAX_PENDING: usize = 10_000;

/// End of an open watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchEnd {
    /// The connection is closed.
    Closed,
    /// The watch ends with 410 Gone.
    Expired,
}

/// Changes of a kind, in one namespace or in all, for one receiver.
#[derive(Debug)]
pub(crate) struct WatchChannel {
    namespace: Option<String>,
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    changes: Vec<ObjectChange>,
    /// The end of the watch, which gets no more changes.
    end: Option<WatchEnd>,
}

impl WatchChannel {
    pub(super) fn new(namespace: Option<String>) -> Self {
        Self { namespace, pending: Mutex::default(), arrived: Notify::new() }
    }

    /// Sends a change of a namespace, if the channel covers the namespace.
    pub(super) fn send(&self, namespace: &str, change: &ObjectChange) {
        if self.namespace.as_ref().is_some_and(|watched| watched != namespace) {
            return;
        }
        let mut pending = self.pending();
        if pending.end.is_some() {
            return;
        }
        if pending.changes.len() < MAX_PENDING {
            pending.changes.push(change.clone());
        } else {
            *pending = Pending { changes: Vec::new(), end: Some(WatchEnd::Expired) };
        }
        self.arrived.notify_one();
    }

    /// Returns the namespace of the changes; `None` for all.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Drops pending and later changes.
    pub(super) fn end(&self, end: WatchEnd) {
        let mut pending = self.pending();
        *pending = Pending { changes: Vec::new(), end: pending.end.max(Some(end)) };
        self.arrived.notify_one();
    }

    /// Returns the changes since the last call, in order.
    ///
    /// # Errors
    /// The watch has ended.
    pub(crate) fn take(&self) -> Result<Vec<ObjectChange>, WatchEnd> {
        let mut pending = self.pending();
        pending.end.map_or_else(|| Ok(std::mem::take(&mut pending.changes)), Err)
    }

    /// Waits for changes. May return without any.
    pub(crate) async fn next(&self) {
        self.arrived.notified().await;
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::resource::Kind;
    use crate::storage::WatchEventType;

    #[test]
    fn a_receiver_that_does_not_read_expires() {
        let object = Arc::new(Value::Null);
        let change = ObjectChange {
            version: 1,
            event_type: WatchEventType::Added,
            kind: Kind::Pod,
            object,
            before: None,
        };
        let channel = WatchChannel::new(None);
        let send = |count: usize| (0..count).for_each(|_| channel.send("default", &change));
        send(MAX_PENDING);
        assert_eq!(channel.take().map(|changes| changes.len()), Ok(MAX_PENDING));
        send(MAX_PENDING + 1);
        assert_eq!(channel.take().unwrap_err(), WatchEnd::Expired);
        send(1);
        assert!(channel.take().is_err() && channel.pending().changes.is_empty());
    }
}
