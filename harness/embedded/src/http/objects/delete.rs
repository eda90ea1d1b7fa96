//! DELETE of one object and of collections.

use axum::response::Response;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use serde_json::json;

use super::Endpoint;
use crate::apiserver::{self, DeleteOptions, DeleteResult, Status};
use crate::cluster::Cluster;
use crate::http::request::ApiRequest;
use crate::http::responses;
use crate::http::selector::ObjectSelector;
use crate::resource::{Kind, ObjectExt};

/// Handles DELETE of one object.
pub(crate) fn delete(
    cluster: &Cluster,
    request: &ApiRequest,
    endpoint: Endpoint,
) -> Result<Response, Status> {
    let options = delete_options(request, endpoint.view.kind)?;
    let (namespace, name) = (request.path.namespace(), request.path.name());
    let deleted = cluster.with(|simulation| {
        simulation.with_context(|ctx| apiserver::delete(ctx, endpoint.view.kind, namespace, name, options))
    })?;
    Ok(match deleted {
        DeleteResult::Object(object) => endpoint.view.one(200, &object, &[]),
        DeleteResult::Status(status) => responses::json(200, &status),
    })
}

/// Handles DELETE of the selected objects of a namespace. Responds with the objects before their
/// deletion.
pub(crate) fn delete_collection(
    cluster: &Cluster,
    request: &ApiRequest,
    endpoint: Endpoint,
) -> Result<Response, Status> {
    let options = delete_options(request, endpoint.view.kind)?;
    let selector = ObjectSelector::from_query(&request.query, endpoint.view.kind)?;
    let namespace = request.path.namespace();
    let (objects, version) = cluster.with(|simulation| {
        simulation.with_context(|ctx| {
            let all = ctx.store.list(endpoint.view.kind, Some(namespace));
            let selected: Vec<_> = all.filter(|object| selector.matches(object)).cloned().collect();
            for object in &selected {
                let name = object.name();
                match apiserver::delete(ctx, endpoint.view.kind, namespace, name, options.clone()) {
                    // 404: deleted together with another object.
                    Err(status) if status.code != 404 => return Err(status),
                    _ => {}
                }
            }
            Ok((selected, ctx.store.version()))
        })
    })?;
    Ok(endpoint.view.list(&objects, json!({"resourceVersion": version.to_string()})))
}

/// Reads `DeleteOptions` from the body, or from the query if there is no body.
///
/// # Errors
/// 501 also for a Job without `propagationPolicy`, whose pods would be orphaned: batch/v1 predates
/// garbage collection.
fn delete_options(request: &ApiRequest, kind: Kind) -> Result<DeleteOptions, Status> {
    let sent = if request.body.is_empty() {
        v1::DeleteOptions {
            grace_period_seconds: request.query.number("gracePeriodSeconds")?,
            propagation_policy: request.query.get("propagationPolicy").map(str::to_owned),
            ..v1::DeleteOptions::default()
        }
    } else {
        let body = request.json_body()?;
        serde_json::from_slice::<v1::DeleteOptions>(&body).map_err(|error| {
            Status::bad_request(format!("decoded object cannot be converted to DeleteOptions: {error}"))
        })?
    };
    if kind == Kind::Job && sent.propagation_policy.as_deref().unwrap_or_default().is_empty() {
        return Err(Status::orphaned_dependents());
    }
    DeleteOptions::from_api(sent)
}
