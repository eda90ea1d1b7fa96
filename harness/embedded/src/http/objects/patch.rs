//! PATCH.

use axum::response::Response;
use serde_json::{Value, json};

use super::Endpoint;
use super::write::replace;
use crate::apiserver::{self, FieldValidation, Status, WriteOptions};
use crate::cluster::Cluster;
use crate::http::request::{ApiRequest, ContentType, yaml_to_json};
use crate::http::{errors, patch};

const MEDIA_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
];

/// Handles PATCH of an object or subresource.
pub(crate) fn patch(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Response, Status> {
    let options = request.write_options()?;
    let content_type = ContentType::from_headers(&request.headers)?;
    if content_type == ContentType::ApplyPatch {
        return apply(cluster, request, endpoint, options);
    }
    let patch = parse(&request.body)?;
    let (object, warnings) = cluster.with(|simulation| {
        simulation.with(|_, _, ctx| {
            let stored = endpoint.stored(ctx.store, request)?;
            let new = match content_type {
                ContentType::JsonPatch => patch::json_patch(&stored, &patch),
                ContentType::MergePatch => Ok(patch::merge_patch(&stored, &patch)),
                ContentType::StrategicMergePatch => {
                    patch::strategic_merge_patch(endpoint.kind, &stored, patch)
                }
                _ => Err(errors::unsupported_media_type("", MEDIA_TYPES)),
            }?;
            replace(ctx, request, endpoint, new, options)
        })
    })?;
    Ok(endpoint.view.one(200, &object, &warnings))
}

/// Handles server-side apply as a merge: field managers are not tracked, so fields that are no
/// longer applied stay.
fn apply(
    cluster: &Cluster,
    request: &ApiRequest,
    endpoint: Endpoint,
    options: WriteOptions,
) -> Result<Response, Status> {
    const WARNING: &str =
        "the embedded cluster merges applied objects: fields that are no longer applied stay";
    if request.query.text("fieldManager").is_empty() {
        let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
        return Err(Status::new(422, "Invalid", message));
    }
    let mut applied = parse(&yaml_to_json(&request.body)?)?;
    if !applied.is_object() {
        return Err(Status::bad_request("the applied configuration is not an object"));
    }
    let (namespace, name) = (request.target.namespace(), request.target.name());
    let (code, object, mut warnings) = cluster.with(|simulation| {
        simulation.with(|_, _, ctx| match endpoint.stored(ctx.store, request) {
            Ok(stored) => {
                let new = patch::strategic_merge_patch(endpoint.kind, &stored, applied)?;
                let (object, warnings) = replace(ctx, request, endpoint, new, options)?;
                Ok((200, object, warnings))
            }
            Err(not_found) if request.target.subresource.is_some() => Err(not_found),
            Err(_) => {
                applied["metadata"]["name"] = json!(name);
                let (object, warnings) = apiserver::create(ctx, endpoint.kind, namespace, applied, options)?;
                Ok((201, object, warnings))
            }
        })
    })?;
    if options.field_validation != FieldValidation::Ignore {
        warnings.push(WARNING.to_owned());
    }
    Ok(endpoint.view.one(code, &object, &warnings))
}

fn parse(body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
}
