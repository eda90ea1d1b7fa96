//! POST and PUT.

use axum::response::Response;
use serde_json::{Value, json};

use super::{Place, get};
use crate::api::request::{self, Request};
use crate::api::resource::Source;
use crate::cluster::Cluster;
use crate::registry::{self, Create, Status, Stored, Strictness, Update, event};
use crate::store::{Kind, Scope};
use crate::world::Ctx;

/// Creates an object.
pub fn create(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let how = Create { strict: request.query.strictness()?, dry_run: request.query.dry_run()? };
    let (object, mut warnings) = sent(request, place, how.strict)?;
    in_namespace(request, place, &object)?;
    let (object, more) = cluster.with(|world| {
        world.with(|_, _, ctx| {
            registry::create(ctx, place.kind, request.target.namespace(), to_stored(place, object), how)
        })
    })?;
    warnings.extend(more);
    Ok(place.view.one(201, &object, &warnings))
}

/// Replaces an object, or its part that the path names.
pub fn update(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let how = Update { strict: request.query.strictness()?, dry_run: request.query.dry_run()? };
    let (object, mut warnings) = sent(request, place, how.strict)?;
    in_namespace(request, place, &object)?;
    let stated = object["metadata"]["name"].as_str().unwrap_or_default();
    let named = request.target.name();
    if stated.is_empty() && object["metadata"]["generateName"].is_null() {
        return Err(Status::bad_request("name must be provided"));
    }
    if stated != named {
        return Err(Status::bad_request(format!(
            "the name of the object ({stated}) does not match the name on the URL ({named})"
        )));
    }
    let (code, (object, more)) = cluster.with(|world| {
        world.with(|_, _, ctx| {
            // Some kinds are created by an update.
            let code = if get::stored(ctx.store, request, place).is_ok() { 200 } else { 201 };
            Ok((code, replace(ctx, request, place, to_stored(place, object), how)?))
        })
    })?;
    warnings.extend(more);
    Ok(place.view.one(code, &object, &warnings))
}

/// Hands an object, as it is stored, to the registry's operation for the subresource.
pub fn replace(
    ctx: &mut Ctx,
    request: &Request,
    place: Place,
    object: Value,
    how: Update,
) -> Result<Stored, Status> {
    let (namespace, name) = (request.target.namespace(), request.target.name());
    match request.target.subresource.as_deref() {
        Some("status") => registry::update_status(ctx, place.kind, namespace, name, object, how),
        Some("ephemeralcontainers") => {
            registry::update_ephemeral_containers(ctx, namespace, name, object, how)
        }
        _ => registry::update(ctx, place.kind, namespace, name, object, how),
    }
}

/// PUT of `namespaces/N/finalize`: sets `spec.finalizers`; a namespace that is being deleted and has none left is gone.
pub fn finalize(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let (sent, warnings) = sent(request, place, request.query.strictness()?)?;
    let object = cluster.with(|world| {
        let name = request.target.name();
        get::stored(&world.store, request, place)?;
        let finalizers = sent["spec"]["finalizers"].clone();
        let left = finalizers.as_array().is_some_and(|left| !left.is_empty());
        let stored = world.store.update(Kind::Namespace, "", name, |object| {
            object["spec"]["finalizers"] = finalizers;
        });
        let stored = stored.ok_or_else(|| Status::modified(Kind::Namespace, name))?;
        if !left && !stored["metadata"]["deletionTimestamp"].is_null() {
            world.store.remove(Kind::Namespace, "", name);
        }
        Ok(stored)
    })?;
    Ok(place.view.one(200, &object, &warnings))
}

/// The object in a body. What states no kind is taken for the path's.
fn sent(request: &Request, place: Place, strict: Strictness) -> Result<(Value, Vec<String>), Status> {
    let body = request::json(&request.headers, &request.body)?;
    let (mut object, warnings) = registry::read(place.kind, &body, strict)?;
    typed(&mut object, place)?;
    Ok((object, warnings))
}

/// Sees that an object is of the kind of the path, and says so in it.
pub fn typed(object: &mut Value, place: Place) -> Result<(), Status> {
    let resource = place.view.resource;
    let (kind, version) = (resource.kind, resource.api_version());
    if !object.is_object() {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind})"
        )));
    }
    let stated = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (stated_kind, stated_version) = (stated("kind"), stated("apiVersion"));
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

/// Sees that an object states no other namespace than the path.
pub fn in_namespace(request: &Request, place: Place, object: &Value) -> Result<(), Status> {
    let stated = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if place.kind.scope() == Scope::Namespaced && !stated.is_empty() && stated != request.target.namespace() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// An object in the form in which it is stored.
pub fn to_stored(place: Place, mut object: Value) -> Value {
    if place.view.resource.source == Source::NewEvents {
        event::to_core(&mut object);
    }
    object
}
