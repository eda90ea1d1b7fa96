//! Limit of the requests that a client sends at a time.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request};
use kube::client::Body;
use tokio::sync::Semaphore;
use tower::{Layer, Service};

/// Maximum number of requests at a time. A watch counts until it is established.
pub(super) const MAX_REQUESTS: usize = 32;
/// Start of the paths of Leases.
const LEASES: &str = "/apis/coordination.k8s.io/";

/// Limits the requests of a client. Changes of Leases have a permit of their own: they do not wait
/// for requests that are not answered, such as those to kubelets.
#[derive(Clone)]
pub(super) struct RequestLimit {
    lease_changes: Arc<Semaphore>,
    others: Arc<Semaphore>,
}

impl Default for RequestLimit {
    fn default() -> Self {
        Self {
            lease_changes: Arc::new(Semaphore::new(1)),
            others: Arc::new(Semaphore::new(MAX_REQUESTS - 1)),
        }
    }
}

impl<S> Layer<S> for RequestLimit {
    type Service = LimitedService<S>;

    fn layer(&self, inner: S) -> LimitedService<S> {
        LimitedService { inner, limit: self.clone() }
    }
}

/// A service whose requests wait for a permit.
pub(super) struct LimitedService<S> {
    inner: S,
    limit: RequestLimit,
}

impl<S> Service<Request<Body>> for LimitedService<S>
where
    S: Service<Request<Body>>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    /// The client sends nothing before its future is polled.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let changes_lease = request.method() != Method::GET && request.uri().path().starts_with(LEASES);
        let permits =
            if changes_lease { self.limit.lease_changes.clone() } else { self.limit.others.clone() };
        let response = self.inner.call(request);
        async move {
            let _permit = permits.acquire_owned().await.ok();
            response.await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use kube::Client;
    use serde_json::json;
    use tokio::task::JoinSet;

    use super::*;
    use crate::node::KubeletProxy;
    use crate::run_lease::RunLease;
    use crate::workload::Namespace;

    /// Kubelets that the API server cannot reach keep as many requests as there may be.
    #[tokio::test(start_paused = true)]
    async fn renewals_do_not_wait_for_kubelets_that_do_not_answer() {
        let (hung, renewals) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (hung.clone(), renewals.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (hung, renewals) = counters.clone();
            async move {
                if request.uri().path().contains("/proxy/") {
                    hung.fetch_add(1, Ordering::Relaxed);
                    return std::future::pending().await;
                }
                if request.method() == Method::PATCH {
                    renewals.fetch_add(1, Ordering::Relaxed);
                }
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}});
                Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(
                    lease.to_string().into_bytes(),
                )))
            }
        });
        let client = Client::new(RequestLimit::default().layer(service), "default");
        let namespace = Namespace::with_client("evictlab-nodes-a", client.clone());
        let lease = RunLease::create(&namespace, "a").await.unwrap();
        let mut queries = JoinSet::new();
        for _ in 0..100 {
            let client = client.clone();
            queries.spawn(async move { KubeletProxy::new(&client, "n").configz().await.is_ok() });
        }
        let lost = tokio::time::timeout(Duration::from_secs(600), lease.lost()).await;
        assert!(lost.is_err(), "{lost:?}");
        assert_eq!(hung.load(Ordering::Relaxed), MAX_REQUESTS - 1);
        assert!(renewals.load(Ordering::Relaxed) > 50);
        let within = KubeletProxy::new(&client, "n").with_timeout(Duration::from_secs(10));
        let error = within.configz().await.unwrap_err().to_string();
        assert_eq!(error, "failed to read the configuration of node n: no answer within 10 s");
    }
}
