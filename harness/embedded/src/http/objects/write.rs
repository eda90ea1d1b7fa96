//! POST and PUT.

use axum::response::Response;
use serde_json::Value;

use super::Endpoint;
use crate::apiserver::{self, FieldValidation, Status, StoredObject};
use crate::cluster::Cluster;
use crate::context::SimContext;
use crate::http::request::ApiRequest;
use crate::http::resource::SubresourceKind;
use crate::http::responses;
use crate::resource::ObjectExt;

/// Handles POST: creates an object.
pub(crate) fn create(
    cluster: &Cluster,
    request: &ApiRequest,
    endpoint: Endpoint,
) -> Result<Response, Status> {
    let field_validation = request.query.field_validation()?;
    let object = parse(request, endpoint)?;
    let namespace = request.path.namespace();
    let StoredObject { object, warnings } = cluster.with(|simulation| {
        simulation.with_context(|ctx| {
            apiserver::create(ctx, endpoint.view.kind, namespace, object, field_validation)
        })
    })?;
    Ok(endpoint.view.one(201, &object, &warnings))
}

/// Handles PUT: replaces an object or subresource.
pub(crate) fn update(
    cluster: &Cluster,
    request: &ApiRequest,
    endpoint: Endpoint,
) -> Result<Response, Status> {
    let field_validation = request.query.field_validation()?;
    let object = parse(request, endpoint)?;
    let metadata = object.metadata();
    if metadata.text("name").is_empty() && metadata.text("generateName").is_empty() {
        return Err(Status::bad_request("name must be provided"));
    }
    let (code, StoredObject { object, warnings }) = cluster.with(|simulation| {
        simulation.with_context(|ctx| {
            // Updates of events and leases also create.
            let code = if endpoint.stored(ctx.store, request).is_ok() { 200 } else { 201 };
            Ok((code, replace(ctx, request, endpoint, object, field_validation)?))
        })
    })?;
    Ok(endpoint.view.one(code, &object, &warnings))
}

/// Replaces the object or subresource that a request names.
pub(crate) fn replace(
    ctx: &mut SimContext,
    request: &ApiRequest,
    endpoint: Endpoint,
    object: Value,
    field_validation: FieldValidation,
) -> Result<StoredObject, Status> {
    let path = endpoint.path(request);
    match endpoint.subresource {
        Some(SubresourceKind::Status) => apiserver::update_status(ctx, path, object, field_validation),
        Some(SubresourceKind::EphemeralContainers) => {
            apiserver::update_ephemeral_containers(ctx, path.namespace, path.name, object, field_validation)
        }
        Some(SubresourceKind::Resize) => {
            apiserver::resize(ctx, path.namespace, path.name, object, field_validation)
        }
        _ => apiserver::update(ctx, path, object, field_validation),
    }
}

/// Handles POST of an `Eviction`: evicts a pod.
pub(crate) fn evict(cluster: &Cluster, request: &ApiRequest) -> Result<Response, Status> {
    let body = request.json_body()?;
    let eviction: Value =
        serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))?;
    let (namespace, pod) = (request.path.namespace(), request.path.name());
    let status = cluster
        .with(|simulation| simulation.with_context(|ctx| apiserver::evict(ctx, namespace, pod, &eviction)))?;
    Ok(responses::json(201, &status))
}

/// Parses the object of a body.
fn parse(request: &ApiRequest, endpoint: Endpoint) -> Result<Value, Status> {
    let body = request.json_body()?;
    apiserver::parse(endpoint.view.kind, &body)
}
