//! Notifications of waiting tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Version number with notifications. Tasks wake in the order in which they began to wait, so that
/// runs are reproducible; Tokio's `watch` wakes them in random order (`BigNotify`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Broadcast(Arc<State>);

#[derive(Debug, Default)]
struct State {
    version: AtomicU64,
    waiting: Notify,
}

/// Receiver of a [`Broadcast`], with the last version that it received.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    broadcast: Broadcast,
    notified_version: u64,
}

impl Broadcast {
    /// Increments the version and wakes all waiting tasks.
    pub(crate) fn notify(&self) {
        self.0.version.fetch_add(1, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// Returns the number of notifications.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::SeqCst)
    }

    /// Subscribes to notifications from now on.
    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription { broadcast: self.clone(), notified_version: self.version() }
    }
}

impl Subscription {
    /// Returns the last version that was received.
    pub(crate) fn notified_version(&self) -> u64 {
        self.notified_version
    }

    /// Waits for a notification that was not received yet.
    pub(crate) async fn next(&mut self) {
        loop {
            // Created before the comparison, so that no later notification is missed.
            let notified = self.broadcast.0.waiting.notified();
            let version = self.broadcast.version();
            if version != self.notified_version {
                self.notified_version = version;
                return;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local, yield_now};

    use super::*;

    #[tokio::test]
    async fn wakes_tasks_in_the_order_of_waiting() {
        let broadcast = Broadcast::default();
        broadcast.notify();
        let heard = Rc::new(RefCell::new(Vec::new()));
        let listen = async {
            let all = (0..50).map(|name| {
                let (mut subscription, heard) = (broadcast.subscribe(), heard.clone());
                spawn_local(async move {
                    subscription.next().await;
                    heard.borrow_mut().push(name);
                })
            });
            let all: Vec<_> = all.collect();
            yield_now().await;
            assert!(heard.borrow().is_empty(), "no notification yet");
            broadcast.notify();
            for task in all {
                task.await.unwrap();
            }
        };
        LocalSet::new().run_until(listen).await;
        assert_eq!(*heard.borrow(), (0..50).collect::<Vec<_>>());
    }
}
