//! Routes of the API.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use tokio::time::sleep;

use super::request::ResourcePath;
use super::{discovery, dispatch, errors, openapi, responses, version};
use crate::cluster::Cluster;
use crate::fault::RequestOutcome;

impl Cluster {
    /// Returns the API as a service within the process, without authentication.
    pub fn router(&self) -> Router {
        let health = || get(version::health);
        Router::new()
            .route("/healthz", health())
            .route("/healthz/{check}", health())
            .route("/livez", health())
            .route("/livez/{check}", health())
            .route("/readyz", health())
            .route("/readyz/{check}", health())
            .route("/version", get(version::version))
            .route("/version/", get(version::version))
            .route("/api", get(discovery::core_versions))
            .route("/api/", get(discovery::core_versions))
            .route("/apis", get(discovery::groups))
            .route("/apis/", get(discovery::groups))
            .route("/apis/{group}", get(discovery::group))
            .route("/api/{version}", get(discovery::core_resources))
            .route("/apis/{group}/{version}", get(discovery::resources))
            .route("/openapi/v3", get(openapi::index))
            .route("/openapi/v3/{*path}", get(openapi::document))
            .fallback(dispatch::handle)
            .with_state(self.clone())
            .layer(from_fn_with_state(self.clone(), inject_faults))
    }
}

/// Delays or rejects a request if the fault script says so. Open watches are handled by
/// `objects::watch`.
async fn inject_faults(State(cluster): State<Cluster>, request: Request, next: Next) -> Response {
    let Some(path) = ResourcePath::parse(request.uri().path()) else { return next.run(request).await };
    let node = path.name.as_deref().filter(|_| path.resource == "nodes");
    let namespace = match path.resource.as_str() {
        "namespaces" => path.name.as_deref(),
        _ => path.namespace.as_deref(),
    };
    let outcome = cluster.with(|simulation| {
        simulation.faults.request_outcome(simulation.now, &path.resource, namespace, node)
    });
    match outcome {
        RequestOutcome::Answered => {}
        RequestOutcome::Rejected(code) => return responses::error(&errors::injected(code)),
        RequestOutcome::Delayed(delay) => sleep(delay).await,
    }
    next.run(request).await
}
