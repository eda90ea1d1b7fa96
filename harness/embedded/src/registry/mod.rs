//! What may be done to objects, and what is done with them then: defaults, validation, admission, graceful deletion, subresources. HTTP is not
//! known here; whoever changes an object for a user or as a controller comes by here, kubelets write their own statuses.

mod request;
mod status;

pub use request::{Create, DeleteOptions, Deleted, Preconditions, Stored, Strictness, Update};
pub use status::{Status, success};

use std::sync::Arc;

use serde_json::{Value, json};

use crate::store::{Kind, Scope, Trouble};
use crate::world::Ctx;

/// Reads a JSON body. Doubled fields, which a [`Value`] cannot hold, are refused or become warnings here; unknown ones are looked for by
/// [`create`] and [`update`].
pub fn read(_kind: Kind, body: &[u8], _strict: Strictness) -> Result<(Value, Vec<String>), Status> {
    serde_json::from_slice(body)
        .map(|value| (value, Vec::new()))
        .map_err(|error| Status::bad_request(error.to_string()))
}

/// Creates an object; `namespace` is empty for kinds that live in none.
pub fn create(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    mut object: Value,
    how: Create,
) -> Result<Stored, Status> {
    if kind.scope() == Scope::Namespaced {
        object["metadata"]["namespace"] = json!(namespace);
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if how.dry_run {
        return Ok((Arc::new(object), Vec::new()));
    }
    let stored = ctx.store.create(kind, object, ctx.now).map_err(|_| Status::already_exists(kind, &name))?;
    Ok((stored, Vec::new()))
}

/// Replaces an object: all of it but its status.
pub fn update(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    name: &str,
    mut object: Value,
    how: Update,
) -> Result<Stored, Status> {
    let old = found(ctx, kind, namespace, name)?;
    object["status"] = old["status"].clone();
    replace(ctx, kind, name, object, how)
}

/// Replaces an object's status, and nothing else of it but labels and annotations.
pub fn update_status(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    name: &str,
    object: Value,
    how: Update,
) -> Result<Stored, Status> {
    let old = found(ctx, kind, namespace, name)?;
    let mut new = Value::clone(&old);
    new["status"] = object["status"].clone();
    replace(ctx, kind, name, new, how)
}

/// Deletes an object.
pub fn delete(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    name: &str,
    how: DeleteOptions,
) -> Result<Deleted, Status> {
    let old = found(ctx, kind, namespace, name)?;
    if !how.dry_run {
        ctx.store.remove(kind, namespace, name);
    }
    let details = json!({"name": name, "kind": kind.plural(), "uid": old["metadata"]["uid"]});
    Ok(Deleted::Status(success(Some(details))))
}

/// Gives a pod its node.
pub fn bind(ctx: &mut Ctx, namespace: &str, pod: &str, node: &str) -> Result<(), Status> {
    found(ctx, Kind::Pod, namespace, pod)?;
    ctx.store.update(Kind::Pod, namespace, pod, |pod| pod["spec"]["nodeName"] = json!(node));
    Ok(())
}

/// Evicts a pod as the API's subresource does, by a `policy/v1` `Eviction`; the answer is a `Status` of success.
pub fn evict(ctx: &mut Ctx, namespace: &str, pod: &str, _eviction: &Value) -> Result<Value, Status> {
    delete(ctx, Kind::Pod, namespace, pod, DeleteOptions::default())?;
    Ok(success(None))
}

/// Sets a pod's ephemeral containers to those of `object`, a whole pod of which nothing else is looked at.
pub fn update_ephemeral_containers(
    ctx: &mut Ctx,
    namespace: &str,
    pod: &str,
    object: Value,
    how: Update,
) -> Result<Stored, Status> {
    let old = found(ctx, Kind::Pod, namespace, pod)?;
    let mut new = Value::clone(&old);
    new["spec"]["ephemeralContainers"] = object["spec"]["ephemeralContainers"].clone();
    replace(ctx, Kind::Pod, pod, new, how)
}

/// Takes out a pod that is being deleted and of which its kubelet has nothing left. A pod of another uid stays.
pub fn finish_pod(ctx: &mut Ctx, namespace: &str, name: &str, uid: &str) {
    let same = |pod: &Arc<Value>| pod["metadata"]["uid"] == uid;
    if ctx.store.get(Kind::Pod, namespace, name).is_some_and(same) {
        ctx.store.remove(Kind::Pod, namespace, name);
    }
}

fn found(ctx: &Ctx, kind: Kind, namespace: &str, name: &str) -> Result<Arc<Value>, Status> {
    ctx.store.get(kind, namespace, name).cloned().ok_or_else(|| Status::not_found(kind, name))
}

fn replace(ctx: &mut Ctx, kind: Kind, name: &str, object: Value, how: Update) -> Result<Stored, Status> {
    if how.dry_run {
        return Ok((Arc::new(object), Vec::new()));
    }
    let stored = ctx.store.replace(kind, object).map_err(|trouble| match trouble {
        Trouble::Missing => Status::not_found(kind, name),
        Trouble::Exists => Status::already_exists(kind, name),
        Trouble::Conflict => Status::modified(kind, name),
    })?;
    Ok((stored, Vec::new()))
}
