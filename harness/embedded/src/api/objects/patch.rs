//! PATCH.

use axum::response::Response;
use serde_json::{Value, json};

use super::write::{in_namespace, replace, to_stored, typed};
use super::{Place, get};
use crate::api::patch;
use crate::api::refusal;
use crate::api::request::{Content, Request, yaml};
use crate::cluster::Cluster;
use crate::registry::{self, Create, Status, Strictness, Update};

/// Changes an object, or its part that the path names.
pub fn patch(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let how = Update { strict: request.query.strictness()?, dry_run: request.query.dry_run()? };
    let content = Content::read(&request.headers)?;
    if content == Content::ApplyPatch {
        return apply(cluster, request, place, how);
    }
    let patch = read(&request.body)?;
    let (object, warnings) = cluster.with(|world| {
        world.with(|_, _, ctx| {
            let stored = get::stored(ctx.store, request, place)?;
            let current = place.view.served(&stored);
            let mut new = match content {
                Content::JsonPatch => patch::json(&current, &patch),
                Content::MergePatch => Ok(patch::merge(&current, &patch)),
                Content::StrategicMergePatch => patch::strategic(place.kind, &current, patch),
                _ => Err(refusal::unsupported_media("", patch::MEDIA_TYPES)),
            }?;
            named(&mut new, request, place)?;
            replace(ctx, request, place, to_stored(place, new), how)
        })
    })?;
    Ok(place.view.one(200, &object, &warnings))
}

/// Server-side apply, as far as a merge goes: nobody's fields are kept apart, so none goes away because it is no longer stated.
fn apply(cluster: &Cluster, request: &Request, place: Place, how: Update) -> Result<Response, Status> {
    const LIMIT: &str = "the embedded cluster merges what is applied: a field that is no longer stated stays";
    if request.query.text("fieldManager").is_empty() {
        return Err(Status {
            code: 422,
            reason: "Invalid",
            message: "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
                .into(),
            details: None,
        });
    }
    let mut applied = read(&yaml(&request.body)?)?;
    typed(&mut applied, place)?;
    in_namespace(request, place, &applied)?;
    let (code, object, mut warnings) = cluster.with(|world| {
        world.with(|_, _, ctx| {
            let namespace = request.target.namespace();
            match ctx.store.get(place.kind, namespace, request.target.name()).cloned() {
                Some(stored) => {
                    let current = place.view.served(&stored);
                    let mut new = patch::strategic(place.kind, &current, applied)?;
                    named(&mut new, request, place)?;
                    let (object, warnings) = replace(ctx, request, place, to_stored(place, new), how)?;
                    Ok((200, object, warnings))
                }
                None if request.target.subresource.is_some() => {
                    Err(Status::not_found(place.kind, request.target.name()))
                }
                None => {
                    applied["metadata"]["name"] = json!(request.target.name());
                    let how = Create { strict: how.strict, dry_run: how.dry_run };
                    let (object, warnings) =
                        registry::create(ctx, place.kind, namespace, to_stored(place, applied), how)?;
                    Ok((201, object, warnings))
                }
            }
        })
    })?;
    if how.strict != Strictness::Ignore {
        warnings.push(LIMIT.to_owned());
    }
    Ok(place.view.one(code, &object, &warnings))
}

fn read(body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))
}

/// Sees that a patch made no other object of it.
fn named(object: &mut Value, request: &Request, place: Place) -> Result<(), Status> {
    typed(object, place)?;
    let stated = object["metadata"]["name"].as_str().unwrap_or_default();
    let named = request.target.name();
    if stated != named {
        return Err(Status::bad_request(format!(
            "the name of the object ({stated}) does not match the name on the URL ({named})"
        )));
    }
    in_namespace(request, place, object)
}
