//! What can be done with pods: binding and eviction.

use axum::response::Response;
use serde_json::Value;

use crate::api::request::{self, Request};
use crate::api::respond;
use crate::cluster::Cluster;
use crate::registry::{self, Status};

/// Gives a pod its node: POST of a `Binding`, at the pod or by itself.
pub fn bind(cluster: &Cluster, request: &Request) -> Result<Response, Status> {
    let binding = object(request)?;
    let stated = binding["metadata"]["name"].as_str().unwrap_or_default();
    let pod = request.target.name.as_deref().unwrap_or(stated);
    if pod != stated && !stated.is_empty() {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    cluster
        .with(|world| world.with(|_, _, ctx| registry::bind(ctx, request.target.namespace(), pod, node)))?;
    Ok(respond::json(201, &registry::success()))
}

/// Evicts a pod: POST of an `Eviction`.
pub fn evict(cluster: &Cluster, request: &Request) -> Result<Response, Status> {
    let eviction = object(request)?;
    let (namespace, pod) = (request.target.namespace(), request.target.name());
    let status =
        cluster.with(|world| world.with(|_, _, ctx| registry::evict(ctx, namespace, pod, &eviction)))?;
    Ok(respond::json(201, &status))
}

fn object(request: &Request) -> Result<Value, Status> {
    let body = request::json(&request.headers, &request.body)?;
    serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))
}
