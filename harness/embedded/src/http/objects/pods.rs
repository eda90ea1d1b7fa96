//! Binding and eviction of pods.

use axum::response::Response;
use serde_json::Value;

use crate::apiserver::{self, Status};
use crate::cluster::Cluster;
use crate::http::request::ApiRequest;
use crate::http::responses;
use crate::resource::ObjectExt;

/// Handles POST of a `Binding`: assigns a pod to a node.
pub(crate) fn bind(cluster: &Cluster, request: &ApiRequest) -> Result<Response, Status> {
    let binding = parse(request)?;
    let (namespace, pod) = (request.target.namespace(), request.target.name());
    let stated = binding.name();
    if pod != stated && !stated.is_empty() {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let node = binding["target"].text("name");
    cluster.with(|simulation| simulation.with(|_, _, ctx| apiserver::bind(ctx, namespace, pod, node)))?;
    Ok(responses::json(201, &apiserver::success()))
}

/// Handles POST of an `Eviction`: evicts a pod.
pub(crate) fn evict(cluster: &Cluster, request: &ApiRequest) -> Result<Response, Status> {
    let eviction = parse(request)?;
    let (namespace, pod) = (request.target.namespace(), request.target.name());
    let status = cluster
        .with(|simulation| simulation.with(|_, _, ctx| apiserver::evict(ctx, namespace, pod, &eviction)))?;
    Ok(responses::json(201, &status))
}

fn parse(request: &ApiRequest) -> Result<Value, Status> {
    let body = request.json_body()?;
    serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))
}
