//! Endpoints of stored objects, and GET of one object.

use std::sync::Arc;

use axum::response::Response;
use serde_json::Value;

use super::list_options::resource_version;
use crate::apiserver::{ObjectPath, Status};
use crate::cluster::Cluster;
use crate::http::errors;
use crate::http::request::ApiRequest;
use crate::http::view::View;
use crate::resource::Kind;
use crate::storage::Store;

/// A stored kind, and its representation in responses.
#[derive(Clone, Copy)]
pub(crate) struct Endpoint {
    /// Representation in responses.
    pub(crate) view: View,
    /// Kind in the store.
    pub(crate) kind: Kind,
}

impl Endpoint {
    /// Returns the path of the object that a request names.
    pub(super) fn path<'a>(&self, request: &'a ApiRequest) -> ObjectPath<'a> {
        ObjectPath { kind: self.kind, namespace: request.target.namespace(), name: request.target.name() }
    }

    /// Returns the stored object that a request names, or 404.
    pub(super) fn stored(&self, store: &Store, request: &ApiRequest) -> Result<Arc<Value>, Status> {
        let ObjectPath { kind, namespace, name } = self.path(request);
        store.get(kind, namespace, name).cloned().ok_or_else(|| Status::not_found(kind, name))
    }
}

/// Handles GET of one object.
pub(crate) fn get(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Response, Status> {
    let minimum = resource_version(&request.query)?.unwrap_or_default();
    let object = cluster.with(|simulation| {
        let current = simulation.store.version();
        if minimum > current {
            return Err(errors::version_too_large(minimum, current));
        }
        endpoint.stored(&simulation.store, request)
    })?;
    Ok(endpoint.view.one(200, &object, &[]))
}
