//! Permits to put nodes under pressure that evictlab does not manage.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits of a run, one per node that may be under pressure (`--max-starved-nodes`).
#[derive(Clone)]
pub(crate) struct PressurePermits {
    permits: Arc<Semaphore>,
    total: usize,
    /// Reasons of the permits that are not given back.
    lost: Arc<Mutex<Vec<String>>>,
}

/// Right to put one node under pressure, until it has recovered.
pub(crate) struct PressurePermit {
    permit: OwnedSemaphorePermit,
    /// Namespaces of the cases that may have put the node under pressure.
    pub namespaces: Vec<String>,
}

/// The nodes that were under pressure did not recover: no other node may come under pressure.
#[derive(Debug, thiserror::Error)]
#[error("failed to wait for nodes that were under pressure: {0}")]
pub(crate) struct PermitsLost(pub(crate) String);

impl PressurePermits {
    pub(crate) fn new(total: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(total)), total, lost: Arc::default() }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// All permits are lost.
    pub(crate) async fn acquire(&self) -> Result<PressurePermit, PermitsLost> {
        match self.permits.clone().acquire_owned().await {
            Ok(permit) => Ok(PressurePermit { permit, namespaces: Vec::new() }),
            Err(_) => Err(PermitsLost(self.lost().join("; "))),
        }
    }

    /// Keeps the permit of a node that did not recover for the rest of the run.
    pub(crate) fn lose(&self, permit: PressurePermit, why: String) {
        permit.permit.forget();
        let mut lost = self.lost();
        lost.push(why);
        if lost.len() >= self.total {
            self.permits.close();
        }
    }

    fn lost(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lost_permit_is_not_given_to_another_node() {
        let permits = PressurePermits::new(2);
        let (first, second) = (permits.acquire().await.unwrap(), permits.acquire().await.unwrap());
        let wait = || timeout(Duration::from_secs(1), permits.acquire());
        assert!(wait().await.is_err(), "both are taken");
        permits.lose(first, "n1 is under pressure".to_owned());
        assert!(wait().await.is_err(), "one is lost");
        drop(second);
        let second = wait().await.unwrap().unwrap();
        permits.lose(second, "n2 is under pressure".to_owned());
        let error = wait().await.unwrap().err().map(|lost| lost.to_string()).unwrap_or_default();
        assert!(error.ends_with("n1 is under pressure; n2 is under pressure"), "{error}");
    }
}
