//! Telling those who watch what happens to the objects that they watch, and nobody else.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Change;

/// The changes of a kind, in one namespace or in all, that somebody has not taken yet. There is one who takes them.
#[derive(Debug)]
pub struct Feed {
    namespace: Option<String>,
    told: Mutex<Told>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Told {
    changes: Vec<Change>,
    lost: bool,
}

impl Feed {
    pub(super) fn new(namespace: Option<String>) -> Self {
        Self { namespace, told: Mutex::default(), news: Notify::new() }
    }

    /// Tells of a change in a namespace, if it is watched.
    pub(super) fn tell(&self, namespace: &str, change: &Change) {
        if self.namespace.as_ref().is_none_or(|watched| watched == namespace) {
            self.told().changes.push(change.clone());
            self.news.notify_one();
        }
    }

    /// What was not taken cannot be told any more, nor what follows.
    pub(super) fn lose(&self) {
        self.told().lost = true;
        self.news.notify_one();
    }

    /// What happened since the last time, in order; none if that is not known any more.
    pub fn take(&self) -> Option<Vec<Change>> {
        let mut told = self.told();
        (!told.lost).then(|| std::mem::take(&mut told.changes))
    }

    /// Waits until there is something to take; now and then there is nothing all the same.
    pub async fn next(&self) {
        self.news.notified().await;
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
