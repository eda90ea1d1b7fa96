//! DELETE.

use axum::response::Response;
use serde_json::Value;

use super::Place;
use crate::api::request::{self, Request};
use crate::api::respond;
use crate::api::selector::Selector;
use crate::cluster::Cluster;
use crate::registry::{self, DeleteOptions, Deleted, Preconditions, Propagation, Status};
use crate::store::Kind;

/// Whoever does not say what is to become of a job's pods is told.
const PRESERVED: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// Deletes an object.
pub fn delete(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let how = options(request)?;
    let warnings = match (place.kind, how.propagation) {
        (Kind::Job, None) => vec![PRESERVED.to_owned()],
        _ => Vec::new(),
    };
    let (namespace, name) = (request.target.namespace(), request.target.name());
    let deleted = cluster
        .with(|world| world.with(|_, _, ctx| registry::delete(ctx, place.kind, namespace, name, how)))?;
    Ok(match deleted {
        Deleted::Object(object) => place.view.one(200, &object, &warnings),
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
        let propagation = propagation(request.query.text("propagationPolicy"))?;
        let dry_run = request.query.dry_run()?;
        return Ok(DeleteOptions { grace, propagation, dry_run, ..DeleteOptions::default() });
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
        propagation: propagation(sent["propagationPolicy"].as_str().unwrap_or_default())?,
        dry_run,
    })
}

/// `propagationPolicy`; nothing if it is absent.
fn propagation(text: &str) -> Result<Option<Propagation>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let known = Propagation::ALL.into_iter().find(|known| known.name() == text);
    known.map(Some).ok_or_else(|| Status {
        code: 422,
        reason: "Invalid",
        message: format!(
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: {text:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        ),
        details: None,
    })
}
