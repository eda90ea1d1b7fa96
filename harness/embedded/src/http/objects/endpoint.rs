//! Endpoints of stored objects, and GET of one object.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};

use super::list_options::resource_version;
use crate::apiserver::{ObjectPath, Status};
use crate::cluster::Cluster;
use crate::http::errors;
use crate::http::request::ApiRequest;
use crate::http::view::View;
use crate::resource::{Kind, ObjectExt, Scope};
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

    /// Sets `kind` and `apiVersion` of an object to those of the resource; rejects other ones.
    pub(super) fn set_type(&self, object: &mut Value) -> Result<(), Status> {
        let (kind, version) = (self.view.resource.kind, self.view.resource.api_version());
        if !object.is_object() {
            return Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind})"
            )));
        }
        let text = |field: &str| object.text(field).to_owned();
        let (stated_kind, stated_version) = (text("kind"), text("apiVersion"));
        if !stated_kind.is_empty() && stated_kind != kind {
            return Err(Status::bad_request(format!(
                "{stated_kind} in version {stated_version:?} cannot be handled as a {kind}: converting ({stated_version}.{stated_kind}) to ({version}.{kind}): unknown conversion"
            )));
        }
        if !stated_version.is_empty() && stated_version != version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({stated_version}) does not match the expected API version ({version})"
            )));
        }
        object["kind"] = json!(kind);
        object["apiVersion"] = json!(version);
        Ok(())
    }

    /// Rejects an object in another namespace than that of the request.
    pub(super) fn check_namespace(&self, request: &ApiRequest, object: &Value) -> Result<(), Status> {
        let stated = object.namespace();
        let is_namespaced = self.kind.scope() == Scope::Namespaced;
        if is_namespaced && !stated.is_empty() && stated != request.target.namespace() {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// Rejects an object with another name or namespace than that of the request.
    pub(super) fn check_path(&self, request: &ApiRequest, object: &Value) -> Result<(), Status> {
        let (stated, name) = (object.name(), request.target.name());
        if stated != name {
            return Err(Status::bad_request(format!(
                "the name of the object ({stated}) does not match the name on the URL ({name})"
            )));
        }
        self.check_namespace(request, object)
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
