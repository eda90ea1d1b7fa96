//! Connections that are idle, and since when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Activity of a connection. Clones share their state.
#[derive(Clone)]
pub(super) struct Activity(Arc<Mutex<Requests>>);

struct Requests {
    active: usize,
    /// Time of the connection, or of the end of the last request.
    idle_since: Instant,
}

impl Activity {
    /// Returns the activity of a new connection: idle.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Requests { active: 0, idle_since: Instant::now() })))
    }

    /// Begins a request; it ends with the returned guard.
    pub(super) fn begin(&self) -> ActiveRequest {
        self.lock().active += 1;
        ActiveRequest(self.clone())
    }

    /// Returns the time since which the connection has had no request; `None` during a request.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let requests = self.lock();
        (requests.active == 0).then_some(requests.idle_since)
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request without a complete response.
pub(super) struct ActiveRequest(Activity);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut requests = self.0.lock();
        requests.active -= 1;
        requests.idle_since = Instant::now();
    }
}
