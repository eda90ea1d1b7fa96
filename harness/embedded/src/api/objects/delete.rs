//! DELETE.

use axum::response::Response;
use serde_json::Value;

use super::Place;
use crate::api::request::{self, Request};
use crate::api::respond;
use crate::api::selector::Selector;
use crate::cluster::Cluster;
use crate::registry::{self, DeleteOptions, Deleted, Preconditions, Status};

/// Deletes an object.
pub fn delete(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let how = options(request)?;
    let (namespace, name) = (request.target.namespace(), request.target.name());
    let deleted = cluster
        .with(|world| world.with(|_, _, ctx| registry::delete(ctx, place.kind, namespace, name, how)))?;
    Ok(match deleted {
        Deleted::Object(object) => place.view.one(200, &object, &[]),
        Deleted::Status(status) => respond::json(200, &status),
    })
}

/// Deletes the chosen objects of a namespace, or of none; the answer is the list of what they were.
pub fn delete_collection(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let how = options(request)?;
    let selector = Selector::read(&request.query, place.view.resource.source)?;
    let namespace = request.target.namespace();
    let (objects, version) = cluster.with(|world| {
        world.with(|_, _, ctx| {
            let all = ctx.store.list(place.kind, Some(namespace));
            let chosen: Vec<_> = all.filter(|object| selector.chooses(object)).cloned().collect();
            for object in &chosen {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                match registry::delete(ctx, place.kind, namespace, name, how.clone()) {
                    // Gone by another's deletion.
                    Err(status) if status.code != 404 => return Err(status),
                    _ => {}
                }
            }
            Ok((chosen, ctx.store.version()))
        })
    })?;
    Ok(place.view.many(&objects, serde_json::json!({"resourceVersion": version.to_string()})))
}

/// `DeleteOptions` from the body, or from the parameters if there is none.
fn options(request: &Request) -> Result<DeleteOptions, Status> {
    let seconds = |seconds: i64| {
        u64::try_from(seconds).map_err(|_| Status {
            code: 422,
            reason: "Invalid",
            message: format!(
                "DeleteOptions.meta.k8s.io \"\" is invalid: gracePeriodSeconds: Invalid value: {seconds}: must be non-negative"
            ),
            details: None,
        })
    };
    if request.body.is_empty() {
        let grace = request.query.number("gracePeriodSeconds")?.map(seconds).transpose()?;
        return Ok(DeleteOptions { grace, dry_run: request.query.dry_run()?, ..DeleteOptions::default() });
    }
    let body = request::json(&request.headers, &request.body)?;
    let sent: Value =
        serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))?;
    let kind = sent["kind"].as_str().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        return Err(Status::bad_request(format!(
            "decoded object cannot be converted to DeleteOptions: {kind}"
        )));
    }
    from(&sent, request.query.dry_run()?, seconds)
}

/// `DeleteOptions` from an object.
fn from(
    sent: &Value,
    dry_run: bool,
    seconds: impl Fn(i64) -> Result<u64, Status>,
) -> Result<DeleteOptions, Status> {
    let text = |field: &str| sent["preconditions"][field].as_str().map(str::to_owned);
    let dry_run = dry_run || sent["dryRun"].as_array().is_some_and(|stages| !stages.is_empty());
    Ok(DeleteOptions {
        grace: sent["gracePeriodSeconds"].as_i64().map(seconds).transpose()?,
        preconditions: Preconditions { uid: text("uid"), resource_version: text("resourceVersion") },
        dry_run,
    })
}
