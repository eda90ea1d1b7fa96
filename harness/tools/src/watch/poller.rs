//! Periodic queries of a kubelet.

use std::sync::Arc;
use std::time::Duration;

use evictlab_cluster::WatchBackoff;
use kube::Client;
use kube::runtime::utils::Backoff;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use super::kubelet_client::{KubeletSnapshot, QueryError, query};

/// Name of a node and the result of its query.
pub(super) type QueryResult = (String, Result<KubeletSnapshot, QueryError>);

/// Queries nodes.
#[derive(Clone)]
pub(super) struct Poller {
    pub client: Client,
    pub interval: Duration,
    pub sender: Sender<QueryResult>,
    /// Permits of the queries that run at a time. The wait for one is not part of a query's
    /// timeout.
    pub query_permits: Arc<Semaphore>,
}

impl Poller {
    /// Queries a node periodically after a delay, with increasing pauses while the node does not
    /// answer.
    pub(super) async fn poll(self, node: String, delay: Duration) {
        let mut backoff = WatchBackoff::default();
        let mut pause = delay;
        loop {
            sleep(pause).await;
            let Ok(permit) = self.query_permits.acquire().await else { return };
            let result = query(&self.client, &node).await;
            drop(permit);
            pause = match &result {
                Ok(_) => {
                    backoff.reset();
                    self.interval
                }
                Err(_) => backoff.next().unwrap_or(self.interval).max(self.interval),
            };
            if self.sender.send((node.clone(), result)).await.is_err() {
                return;
            }
        }
    }
}
