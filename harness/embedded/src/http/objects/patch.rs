//! PATCH.

use axum::response::Response;
use serde_json::Value;

use super::Endpoint;
use super::write::replace;
use crate::apiserver::{Status, StoredObject};
use crate::cluster::Cluster;
use crate::http::request::{ApiRequest, ContentType};
use crate::http::{errors, patch};

const MEDIA_TYPES: &[&str] = &["application/merge-patch+json", "application/strategic-merge-patch+json"];

/// Handles PATCH of an object or subresource.
pub(crate) fn patch(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Response, Status> {
    let field_validation = request.query.field_validation()?;
    let content_type = ContentType::from_headers(&request.headers)?;
    let patch = parse(&request.body)?;
    let StoredObject { object, warnings } = cluster.with(|simulation| {
        simulation.with_context(|ctx| {
            let stored = endpoint.stored(ctx.store, request)?;
            let new = match content_type {
                ContentType::MergePatch => {
                    let mut new = Value::clone(&stored);
                    json_patch::merge(&mut new, &patch);
                    Ok(new)
                }
                ContentType::StrategicMergePatch => {
                    patch::strategic_merge_patch(endpoint.view.kind, &stored, patch)
                }
                _ => Err(errors::unsupported_media_type("", MEDIA_TYPES)),
            }?;
            replace(ctx, request, endpoint, new, field_validation)
        })
    })?;
    Ok(endpoint.view.one(200, &object, &warnings))
}

fn parse(body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
}
