//! Endpoints of stored objects, and GET of one object and of lists.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};

use crate::apiserver::{ObjectPath, Status};
use crate::cluster::Cluster;
use crate::http::errors;
use crate::http::request::{ApiRequest, Query};
use crate::http::resource::SubresourceKind;
use crate::http::selector::ObjectSelector;
use crate::http::view::View;
use crate::storage::Store;

/// The target of a request: a stored kind or a subresource, and the representation in responses.
#[derive(Clone, Copy)]
pub(crate) struct Endpoint {
    /// Representation in responses.
    pub(crate) view: View,
    /// Subresource; `None` for the object itself.
    pub(crate) subresource: Option<SubresourceKind>,
}

impl Endpoint {
    /// Returns the path of the object that a request names.
    pub(super) fn path<'a>(&self, request: &'a ApiRequest) -> ObjectPath<'a> {
        ObjectPath { kind: self.view.kind, namespace: request.path.namespace(), name: request.path.name() }
    }

    /// Returns the stored object that a request names, or 404.
    pub(super) fn stored(&self, store: &Store, request: &ApiRequest) -> Result<Arc<Value>, Status> {
        let ObjectPath { kind, namespace, name } = self.path(request);
        store.get(kind, namespace, name).cloned().ok_or_else(|| Status::not_found(kind, name))
    }
}

/// Handles GET of one object.
pub(crate) fn get(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Response, Status> {
    let object = cluster.with(|simulation| {
        check_version_reached(&request.query, simulation.store.version())?;
        endpoint.stored(&simulation.store, request)
    })?;
    Ok(endpoint.view.one(200, &object, &[]))
}

/// Handles GET of a list. The list has the current version and is complete: `limit` is ignored.
pub(crate) fn list(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Response, Status> {
    let selector = ObjectSelector::from_query(&request.query, endpoint.view.kind)?;
    let namespace = request.path.namespace.as_deref();
    let (version, objects) = cluster.with(|simulation| {
        let store = &simulation.store;
        check_version_reached(&request.query, store.version())?;
        let selected = store.list(endpoint.view.kind, namespace).filter(|object| selector.matches(object));
        Ok((store.version(), selected.cloned().collect::<Vec<_>>()))
    })?;
    Ok(endpoint.view.list(&objects, json!({"resourceVersion": version.to_string()})))
}

/// Reads `resourceVersion`; `None` if it is missing, 0 for any version.
///
/// # Errors
/// 400 if it is not a number.
pub(super) fn resource_version(query: &Query) -> Result<Option<u64>, Status> {
    let text = query.text("resourceVersion");
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        Status::bad_request(format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

/// Checks that `resourceVersion` is not later than the current version.
///
/// # Errors
/// 400 if it is not a number, 504 if it is later.
fn check_version_reached(query: &Query, current: u64) -> Result<(), Status> {
    match resource_version(query)? {
        Some(requested) if requested > current => Err(errors::version_too_large(requested, current)),
        _ => Ok(()),
    }
}
