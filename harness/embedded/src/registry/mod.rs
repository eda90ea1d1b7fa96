//! What may be done to objects, and what is done with them then: defaults, validation, admission, graceful deletion, subresources. HTTP is not
//! known here; whoever changes an object for a user or as a controller comes by here, kubelets write their own statuses.

mod budget;
pub(crate) mod condition;
mod decode;
pub mod event;
mod field;
mod meta;
mod names;
mod namespace;
mod node;
pub(crate) mod pod;
mod priority_class;
mod request;
pub(crate) mod selector;
pub(crate) mod share;
mod status;
#[cfg(test)]
mod tests;
mod workload;

pub use decode::read;
pub use names::is_extended_resource;
pub use request::{Create, DeleteOptions, Deleted, Preconditions, Propagation, Stored, Strictness, Update};
pub use status::{Status, success};

use std::sync::Arc;

use evictlab_rules::KubeletVersion;
use serde_json::{Map, Value, json};

use crate::store::{Kind, Scope, Trouble};
use crate::world::Ctx;
use field::Errors;

/// Creates an object; `namespace` is empty for kinds that live in none.
///
/// # Errors
/// What a real server says: 400 for what is not of the type, 403 by admission, 404 without the namespace, 409 if there is one of the name,
/// 422 for what the validation finds.
pub fn create(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    mut object: Value,
    how: Create,
) -> Result<Stored, Status> {
    let warnings = decode::decode(kind, &mut object, how.strict)?;
    let name = meta::prepare(ctx, kind, namespace, &mut object)?;
    meta::check_namespace(ctx, kind, namespace, &name)?;
    match kind {
        Kind::Pod => pod::prepare(ctx, namespace, &name, &mut object)?,
        Kind::Namespace => namespace::prepare(&name, &mut object),
        Kind::Event => event::prepare(&mut object),
        Kind::PriorityClass => priority_class::prepare(ctx, &name, &mut object)?,
        Kind::PodDisruptionBudget => budget::prepare(&mut object),
        Kind::Deployment | Kind::ReplicaSet | Kind::Job => workload::prepare(ctx, kind, &name, &mut object)?,
        Kind::Node | Kind::ServiceAccount | Kind::ConfigMap | Kind::Lease => {}
    }
    validate(kind, &object).into_result(kind, &name)?;
    let key = if kind.scope() == Scope::Namespaced { namespace } else { "" };
    if ctx.store.get(kind, key, &name).is_some() {
        return Err(Status::already_exists(kind, &name));
    }
    if how.dry_run {
        object["metadata"]["uid"] = json!(ctx.store.uid());
        object["metadata"]["creationTimestamp"] = json!(ctx.epoch().seconds(ctx.now));
        return Ok((Arc::new(object), warnings));
    }
    let stored = ctx.store.create(kind, object, ctx.now).map_err(|trouble| refusal(kind, &name, trouble))?;
    Ok((stored, warnings))
}

/// Replaces an object: all of it but its status. An event or lease that is not there is created.
///
/// # Errors
/// As [`create`], 404 if it is not there, and 409 if another `resourceVersion` is stated than it has.
pub fn update(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    name: &str,
    mut object: Value,
    how: Update,
) -> Result<Stored, Status> {
    let old = match found(ctx, kind, namespace, name) {
        Err(_) if matches!(kind, Kind::Event | Kind::Lease) => {
            let how = Create { strict: how.strict, dry_run: how.dry_run };
            return create(ctx, kind, namespace, object, how);
        }
        old => old?,
    };
    let warnings = decode::decode(kind, &mut object, how.strict)?;
    meta::carry_over(kind, namespace, name, &old, &mut object)?;
    let mut errors = match kind {
        Kind::Pod => pod::update::prepare(ctx, &mut object, &old),
        kind if workload::is_one(kind) => workload::update(kind, &mut object, &old),
        _ => validate(kind, &object),
    };
    keep_status(kind, &mut object, &old);
    match kind {
        Kind::Namespace => namespace::keep_spec(&mut object, &old),
        Kind::Event => event::prepare(&mut object),
        Kind::PriorityClass => errors.append(priority_class::update(&object, &old)),
        Kind::ConfigMap => immutable(&object, &old, &mut errors),
        _ => {}
    }
    let counted = matches!(kind, Kind::Pod | Kind::PodDisruptionBudget) || workload::is_one(kind);
    if let Some(generation) = old["metadata"]["generation"].as_i64()
        && counted
        && object["spec"] != old["spec"]
    {
        object["metadata"]["generation"] = json!(generation + 1);
    }
    errors.into_result(kind, name)?;
    finish_update(ctx, kind, namespace, name, object, warnings, how)
}

/// Replaces an object's status, and its labels and annotations; nothing else.
///
/// # Errors
/// As [`update`].
pub fn update_status(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    name: &str,
    mut object: Value,
    how: Update,
) -> Result<Stored, Status> {
    let old = found(ctx, kind, namespace, name)?;
    let warnings = decode::decode(kind, &mut object, how.strict)?;
    meta::carry_over(kind, namespace, name, &old, &mut object)?;
    let mut new = Value::clone(&old);
    for field in ["labels", "annotations"] {
        put(&mut new["metadata"], field, object["metadata"].get(field));
    }
    put(&mut new, "status", object.get("status"));
    if kind == Kind::Pod && new["status"]["qosClass"].is_null() {
        new["status"]["qosClass"] = old["status"]["qosClass"].clone();
    }
    finish_update(ctx, kind, namespace, name, new, warnings, how)
}

/// Deletes an object: a pod with its grace period, a namespace by its controller, what has finalizers when they are gone.
///
/// # Errors
/// 404 if it is not there, 409 if a precondition does not hold, 403 for the namespaces that every cluster needs.
pub fn delete(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    name: &str,
    how: DeleteOptions,
) -> Result<Deleted, Status> {
    match kind {
        Kind::Pod => return pod::deletion::delete(ctx, namespace, name, &how),
        Kind::Namespace => return namespace::delete(ctx, name, &how),
        _ => {}
    }
    let old = found(ctx, kind, namespace, name)?;
    check_preconditions(kind, name, &old, &how.preconditions)?;
    let mut object = Value::clone(&old);
    if workload::is_one(kind) {
        let propagation = how.propagation.unwrap_or(workload::propagation(kind));
        meta::collect(&mut object, propagation);
    }
    if meta::finalizers(&object).next().is_some() {
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(ctx.epoch().seconds(ctx.now));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            if let Some(generation) = object["metadata"]["generation"].as_i64() {
                object["metadata"]["generation"] = json!(generation + 1);
            }
        }
        let object = if how.dry_run { object.into() } else { replace(ctx, kind, name, object)? };
        return Ok(Deleted::Object(object));
    }
    let last = if how.dry_run { None } else { ctx.store.remove(kind, namespace, name) };
    // `ReturnDeletedObject` of the storage.
    if kind == Kind::ServiceAccount {
        return Ok(Deleted::Object(last.unwrap_or(old)));
    }
    Ok(Deleted::Status(status::deleted(kind, name, &old)))
}

/// Gives a pod its node.
///
/// # Errors
/// 404 if it is not there, 409 if it has a node or is being deleted.
pub fn bind(ctx: &mut Ctx, namespace: &str, pod: &str, node: &str) -> Result<(), Status> {
    pod::binding::bind(ctx, namespace, pod, node)
}

/// Evicts a pod as the API's subresource does, by a `policy/v1` `Eviction`; the answer is a `Status` of success.
///
/// # Errors
/// 400 if the eviction has another name, 404 if the pod is not there, 429 if a disruption budget forbids it, 500 if two budgets cover it.
pub fn evict(ctx: &mut Ctx, namespace: &str, pod: &str, eviction: &Value) -> Result<Value, Status> {
    pod::eviction::evict(ctx, namespace, pod, eviction)?;
    Ok(success())
}

/// Sets a pod's ephemeral containers to those of `object`, a whole pod of which nothing else is looked at.
///
/// # Errors
/// 404 if the pod is not there, 409 if another `resourceVersion` is stated than it has, 422 for what ephemeral containers may not have.
pub fn update_ephemeral_containers(
    ctx: &mut Ctx,
    namespace: &str,
    pod: &str,
    mut object: Value,
    how: Update,
) -> Result<Stored, Status> {
    let old = found(ctx, Kind::Pod, namespace, pod)?;
    let warnings = decode::decode(Kind::Pod, &mut object, how.strict)?;
    meta::carry_over(Kind::Pod, namespace, pod, &old, &mut object)?;
    let mut new = pod::ephemeral::taken_over(&old, &object);
    if let Some(generation) = old["metadata"]["generation"].as_i64()
        && new["spec"] != old["spec"]
    {
        new["metadata"]["generation"] = json!(generation + 1);
    }
    pod::ephemeral::update(&new, &old).into_result(Kind::Pod, pod)?;
    finish_update(ctx, Kind::Pod, namespace, pod, new, warnings, how)
}

/// Takes a finalizer from an object, which goes if it was the last thing that kept it.
pub fn release(ctx: &mut Ctx, kind: Kind, namespace: &str, name: &str, finalizer: &str) {
    let Ok(old) = found(ctx, kind, namespace, name) else { return };
    let mut object = Value::clone(&old);
    meta::without_finalizer(&mut object, finalizer);
    // It was there a line ago.
    let _ = finish_update(ctx, kind, namespace, name, object, Vec::new(), Update::default());
}

/// Takes out a pod that is being deleted and of which its kubelet has nothing left. A pod of another uid stays, one with finalizers too.
pub fn finish_pod(ctx: &mut Ctx, namespace: &str, name: &str, uid: &str) {
    pod::deletion::finish(ctx, namespace, name, uid);
}

/// The version whose rules the control plane follows: that of the newest kubelet, since a kubelet may not be newer than its API server.
pub(crate) fn control_plane(ctx: &Ctx) -> KubeletVersion {
    let nodes = ctx.store.list(Kind::Node, None);
    let versions =
        nodes.filter_map(|node| node["status"]["nodeInfo"]["kubeletVersion"].as_str()?.parse().ok());
    versions.max().unwrap_or_else(|| KubeletVersion::minor(36))
}

/// Fills in a pod that no API server has seen, as a server of a version would, and checks it.
///
/// # Errors
/// 422 for what the validation finds.
pub fn complete_pod(pod: &mut Value, version: &KubeletVersion) -> Result<(), Status> {
    decode::decode(Kind::Pod, pod, Strictness::Ignore)?;
    pod::defaults::set(pod, version);
    let name = meta::text(pod, "name").to_owned();
    pod::validation::create(pod).into_result(Kind::Pod, &name)
}

/// Checks an object as one of its kind. Pods that exist are checked by [`pod::update`].
fn validate(kind: Kind, object: &Value) -> Errors {
    match kind {
        Kind::Pod => pod::validation::create(object),
        Kind::Namespace => meta::validate(object, names::label),
        Kind::Node => node::validate(object),
        Kind::Event => event::validate(object),
        Kind::PriorityClass => priority_class::validate(object),
        Kind::PodDisruptionBudget => budget::validate(object),
        Kind::Deployment | Kind::ReplicaSet | Kind::Job => workload::validate(kind, object),
        Kind::ServiceAccount | Kind::ConfigMap | Kind::Lease => meta::validate(object, names::subdomain),
    }
}

fn found(ctx: &Ctx, kind: Kind, namespace: &str, name: &str) -> Result<Arc<Value>, Status> {
    ctx.store.get(kind, namespace, name).cloned().ok_or_else(|| Status::not_found(kind, name))
}

fn check_preconditions(kind: Kind, name: &str, object: &Value, stated: &Preconditions) -> Result<(), Status> {
    let own = |field| meta::text(object, field);
    if let Some(uid) = stated.uid.as_deref().filter(|&uid| !uid.is_empty() && uid != own("uid")) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            own("uid")
        );
        return Err(Status::conflict(kind, name, &why));
    }
    let version = stated.resource_version.as_deref().filter(|version| !version.is_empty());
    if let Some(version) = version.filter(|&version| version != own("resourceVersion")) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            own("resourceVersion")
        );
        return Err(Status::conflict(kind, name, &why));
    }
    Ok(())
}

/// Stores a changed object, or takes it out if only its last finalizer had kept it.
fn finish_update(
    ctx: &mut Ctx,
    kind: Kind,
    namespace: &str,
    name: &str,
    object: Value,
    warnings: Vec<String>,
    how: Update,
) -> Result<Stored, Status> {
    if how.dry_run {
        return Ok((Arc::new(object), warnings));
    }
    let deleted = object["metadata"]["deletionTimestamp"].is_string();
    let grace = object["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
    let stored = replace(ctx, kind, name, object)?;
    let kept = meta::finalizers(&stored).next().is_some() || kind == Kind::Namespace;
    if deleted && grace == 0 && !kept {
        ctx.store.remove(kind, namespace, name);
    }
    Ok((stored, warnings))
}

fn replace(ctx: &mut Ctx, kind: Kind, name: &str, object: Value) -> Result<Arc<Value>, Status> {
    ctx.store.replace(kind, object).map_err(|trouble| refusal(kind, name, trouble))
}

fn refusal(kind: Kind, name: &str, trouble: Trouble) -> Status {
    match trouble {
        Trouble::Missing => Status::not_found(kind, name),
        Trouble::Exists => Status::already_exists(kind, name),
        Trouble::Conflict => Status::modified(kind, name),
    }
}

/// Kinds with the subresource `status` keep theirs when the rest is replaced.
fn keep_status(kind: Kind, object: &mut Value, old: &Value) {
    let has_one = matches!(kind, Kind::Pod | Kind::Node | Kind::Namespace | Kind::PodDisruptionBudget);
    if has_one || workload::is_one(kind) {
        put(object, "status", old.get("status"));
    }
}

/// Sets a field, or takes it out.
fn put(object: &mut Value, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => object[field] = value.clone(),
        None => {
            object.as_object_mut().and_then(|fields: &mut Map<_, _>| fields.shift_remove(field));
        }
    }
}

/// A config map that says so cannot be changed.
fn immutable(object: &Value, old: &Value, errors: &mut Errors) {
    if old["immutable"] != true {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    for field in ["immutable", "data", "binaryData"] {
        if object[field] != old[field] {
            errors.forbidden(&field::Path::new(field), why);
        }
    }
}
