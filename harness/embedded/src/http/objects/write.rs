//! POST and PUT.

use axum::response::Response;
use serde_json::Value;

use super::get::{object_path, stored};
use crate::apiserver::{self, Status, StoredObject, WriteOptions};
use crate::cluster::Cluster;
use crate::context::SimContext;
use crate::http::request::ApiRequest;
use crate::http::responses;
use crate::http::view::View;
use crate::resource::{Kind, ObjectExt};

/// Handles POST: creates an object.
pub(crate) fn create(cluster: &Cluster, request: &ApiRequest, view: View) -> Result<Response, Status> {
    let options = request.write_options()?;
    let object = parse(request, view.resource.kind)?;
    let namespace = request.target.namespace();
    let StoredObject { object, warnings } = cluster.with(|simulation| {
        simulation.with_context(|ctx| apiserver::create(ctx, view.resource.kind, namespace, object, options))
    })?;
    Ok(view.one(201, &object, &warnings))
}

/// Handles PUT: replaces an object or subresource.
pub(crate) fn update(cluster: &Cluster, request: &ApiRequest, view: View) -> Result<Response, Status> {
    let options = request.write_options()?;
    let object = parse(request, view.resource.kind)?;
    let metadata = object.metadata();
    if metadata.text("name").is_empty() && metadata.text("generateName").is_empty() {
        return Err(Status::bad_request("name must be provided"));
    }
    let (code, StoredObject { object, warnings }) = cluster.with(|simulation| {
        simulation.with_context(|ctx| {
            // Updates of events and leases also create.
            let code = if stored(ctx.store, view.resource.kind, request).is_ok() { 200 } else { 201 };
            Ok((code, replace(ctx, request, view.resource.kind, object, options)?))
        })
    })?;
    Ok(view.one(code, &object, &warnings))
}

/// Replaces the object or subresource that a request names.
pub(super) fn replace(
    ctx: &mut SimContext,
    request: &ApiRequest,
    kind: Kind,
    object: Value,
    options: WriteOptions,
) -> Result<StoredObject, Status> {
    let path = object_path(kind, request);
    match request.target.subresource.as_deref() {
        Some("status") => apiserver::update_status(ctx, path, object, options),
        Some("ephemeralcontainers") => {
            apiserver::update_ephemeral_containers(ctx, path.namespace, path.name, object, options)
        }
        Some("resize") => apiserver::resize(ctx, path.namespace, path.name, object, options),
        _ => apiserver::update(ctx, path, object, options),
    }
}

/// Handles POST of an `Eviction`: evicts a pod.
pub(crate) fn evict(cluster: &Cluster, request: &ApiRequest) -> Result<Response, Status> {
    let body = request.json_body()?;
    let eviction: Value =
        serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))?;
    let (namespace, pod) = (request.target.namespace(), request.target.name());
    let status = cluster
        .with(|simulation| simulation.with_context(|ctx| apiserver::evict(ctx, namespace, pod, &eviction)))?;
    Ok(responses::json(201, &status))
}

/// Parses the object of a body.
fn parse(request: &ApiRequest, kind: Kind) -> Result<Value, Status> {
    let body = request.json_body()?;
    apiserver::parse(kind, &body)
}
