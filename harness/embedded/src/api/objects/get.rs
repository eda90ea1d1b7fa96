//! GET of one object.

use std::sync::Arc;

use axum::response::Response;
use serde_json::Value;

use super::Place;
use super::page::version;
use crate::api::refusal;
use crate::api::request::Request;
use crate::cluster::Cluster;
use crate::registry::Status;
use crate::store::Store;

/// Gets an object.
pub fn get(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let least = version(&request.query)?.unwrap_or_default();
    let object = cluster.with(|world| {
        let current = world.store.version();
        if least > current {
            return Err(refusal::too_large(least, current));
        }
        stored(&world.store, request, place)
    })?;
    Ok(place.view.one(200, &object, &[]))
}

/// The object that a path names.
pub fn stored(store: &Store, request: &Request, place: Place) -> Result<Arc<Value>, Status> {
    let target = &request.target;
    let found = store.get(place.kind, target.namespace(), target.name()).cloned();
    found.ok_or_else(|| Status::not_found(place.kind, target.name()))
}
