//! The open connections of a server, and their limit.

use std::collections::HashMap;
use std::future::Future;

use rustix::process::{Resource, getrlimit};
use tokio::task::{AbortHandle, Id, JoinSet};

use super::activity::Activity;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 10_000;
/// Number of files of the process that are not connections.
const OTHER_FILES: usize = 100;

/// The open connections. Dropping it closes them.
pub(super) struct Connections {
    max: usize,
    tasks: JoinSet<()>,
    open: HashMap<Id, (AbortHandle, Activity)>,
}

impl Connections {
    /// Creates an empty set for as many connections as this process may open.
    pub(super) fn new() -> Self {
        let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
        let max = files.map_or(MAX_CONNECTIONS, |files| files.saturating_sub(OTHER_FILES));
        Self::with_max(max.clamp(1, MAX_CONNECTIONS))
    }

    /// Creates an empty set for this number of connections.
    pub(super) fn with_max(max: usize) -> Self {
        Self { max, tasks: JoinSet::new(), open: HashMap::new() }
    }

    /// Waits until there is room for another connection. If there are too many, closes the one that
    /// has been idle longest.
    pub(super) async fn make_room(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.forget(ended);
        }
        while self.open.len() >= self.max {
            let idle = self.open.values().filter_map(|(task, activity)| Some((activity.idle_since()?, task)));
            if let Some((_, task)) = idle.min_by_key(|(since, _)| *since) {
                task.abort();
            }
            if let Some(ended) = self.tasks.join_next_with_id().await {
                self.forget(ended);
            }
        }
    }

    /// Adds a connection.
    pub(super) fn add(&mut self, activity: Activity, connection: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(connection);
        self.open.insert(task.id(), (task, activity));
    }

    fn forget(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        self.open.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::time::{sleep, timeout};

    /// Records the names of the connections that end.
    #[derive(Clone, Default)]
    struct Ended(Arc<Mutex<Vec<&'static str>>>);

    struct Ends(&'static str, Ended);

    impl Drop for Ends {
        fn drop(&mut self) {
            self.1.0.lock().unwrap().push(self.0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_was_idle_longest_makes_room() {
        let ended = Ended::default();
        let mut connections = Connections::with_max(3);
        let add = async |connections: &mut Connections, name| {
            connections.make_room().await;
            let (activity, ends) = (Activity::new(), Ends(name, ended.clone()));
            connections.add(activity.clone(), async move {
                let _ends = ends;
                pending().await
            });
            sleep(Duration::from_secs(1)).await;
            activity
        };
        let first = add(&mut connections, "first").await;
        let _request = first.begin();
        let second = add(&mut connections, "second").await;
        add(&mut connections, "third").await;
        drop(second.begin());
        sleep(Duration::from_secs(1)).await;
        add(&mut connections, "fourth").await;
        assert_eq!(*ended.0.lock().unwrap(), ["third"]);
        add(&mut connections, "fifth").await;
        assert_eq!(*ended.0.lock().unwrap(), ["third", "second"]);
    }

    #[tokio::test(start_paused = true)]
    async fn active_connections_are_not_closed() {
        let mut connections = Connections::with_max(1);
        let activity = Activity::new();
        let request = activity.begin();
        connections.add(activity, async move {
            sleep(Duration::from_secs(60)).await;
            drop(request);
        });
        assert!(timeout(Duration::from_secs(59), connections.make_room()).await.is_err());
        assert!(timeout(Duration::from_secs(2), connections.make_room()).await.is_ok());
    }
}
