//! The Kubernetes API over HTTP.
//!
//! ```text
//! router → faults → (discovery | openapi | version | resources)
//! resources: Target → Resource → get, list, watch, write, patch, or a subresource
//! ```
//!
//! Handlers hold the model only while they read or write it; a watch and a followed log hold it for each piece that they send.

mod daemon_sets;
mod discovery;
mod faults;
mod log;
mod metrics;
mod objects;
mod openapi;
mod patch;
mod proxy;
mod refusal;
mod request;
mod resource;
mod resources;
mod respond;
mod review;
mod selector;
mod serve;
mod table;
mod version;

pub(crate) use serve::serve;
pub use serve::{Access, AccessError};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;

use crate::cluster::Cluster;

/// The API of a cluster.
pub(crate) fn router(cluster: &Cluster) -> Router {
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
        .route("/api", get(discovery::versions))
        .route("/api/", get(discovery::versions))
        .route("/apis", get(discovery::groups))
        .route("/apis/", get(discovery::groups))
        .route("/apis/{group}", get(discovery::group))
        .route("/api/{version}", get(discovery::core))
        .route("/apis/{group}/{version}", get(discovery::resources))
        .route("/openapi/v2", get(openapi::v2))
        .route("/openapi/v3", get(openapi::index))
        .route("/openapi/v3/{*path}", get(openapi::v3))
        .fallback(resources::answer)
        .with_state(cluster.clone())
        .layer(from_fn_with_state(cluster.clone(), faults::pass))
}
