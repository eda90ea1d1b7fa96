//! What is owned goes with its owner: `pkg/controller/garbagecollector`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::{ControlEvent, after, meta};
use crate::registry::{self, DeleteOptions, Propagation};
use crate::store::{Change, ChangeKind, Kind, Scope};
use crate::world::Ctx;

/// How long the collector takes to get to an object.
const SOON: Duration = Duration::from_millis(10);

/// Something has changed: it may have been somebody's owner, or have one that is not there.
pub(super) fn changed(change: &Change, ctx: &mut Ctx) {
    let object = &change.object;
    if change.what == ChangeKind::Deleted {
        let uid = meta(object, "uid").to_owned();
        if dependents(&uid, ctx).next().is_some() {
            after(ctx, SOON, ControlEvent::Collect(uid));
        }
    } else {
        let before = change.before.as_ref().map(|before| &before["metadata"]["ownerReferences"]);
        if before != Some(&object["metadata"]["ownerReferences"]) {
            let missing: Vec<String> =
                owners(object).filter(|owner| !is_there(owner, object, ctx)).map(uid).collect();
            missing.into_iter().for_each(|uid| after(ctx, SOON, ControlEvent::Collect(uid)));
        }
    }
    // The last dependent that was waited for may be gone.
    let waiting =
        |object: &Value| !object["metadata"]["deletionTimestamp"].is_null() && way(object).is_some();
    if waiting(object) && change.what != ChangeKind::Deleted {
        after(ctx, SOON, ControlEvent::Dependents(change.kind, place(object)));
    }
    for owner in owners(object) {
        let Some((kind, namespace, name)) = named(owner, object) else { continue };
        if ctx.store.get(kind, namespace, name).is_some_and(|owner| waiting(owner)) {
            let place = (namespace.to_owned(), name.to_owned());
            after(ctx, SOON, ControlEvent::Dependents(kind, place));
        }
    }
}

/// Deletes what nobody owns any more but one who is gone; what has another owner only forgets him.
pub(super) fn collect(gone: &str, ctx: &mut Ctx) {
    let all: Vec<_> = dependents(gone, ctx).map(|(kind, object)| (kind, object.clone())).collect();
    for (kind, object) in all {
        let (namespace, name) = (meta(&object, "namespace"), meta(&object, "name"));
        if owners(&object).any(|owner| owner["uid"] != gone && is_there(owner, &object, ctx)) {
            disown(kind, namespace, name, gone, ctx);
        } else {
            delete(kind, namespace, name, Propagation::Background, ctx);
        }
    }
}

/// Deletes the dependents of an object that waits for them, or makes them nobody's, as its deletion said; lets it go when that is done.
pub(super) fn dependents_first(kind: Kind, (namespace, name): &(String, String), ctx: &mut Ctx) {
    let Some(object) = ctx.store.get(kind, namespace, name).cloned() else { return };
    let Some(way) = way(&object).filter(|_| !object["metadata"]["deletionTimestamp"].is_null()) else {
        return;
    };
    let uid = meta(&object, "uid");
    let all: Vec<_> = dependents(uid, ctx).map(|(kind, object)| (kind, object.clone())).collect();
    let mut blocked = false;
    for (kind, dependent) in &all {
        let (namespace, name) = (meta(dependent, "namespace"), meta(dependent, "name"));
        if way == Propagation::Orphan {
            disown(*kind, namespace, name, uid, ctx);
            continue;
        }
        if dependent["metadata"]["deletionTimestamp"].is_null() {
            delete(*kind, namespace, name, way, ctx);
        }
        let blocks = |owner: &Value| owner["uid"] == uid && owner["blockOwnerDeletion"] == true;
        blocked |= owners(dependent).any(blocks) && ctx.store.get(*kind, namespace, name).is_some();
    }
    if !blocked && let Some(finalizer) = way.finalizer() {
        registry::release(ctx, kind, namespace, name, finalizer);
    }
}

/// What the deletion of an object waits for.
fn way(object: &Value) -> Option<Propagation> {
    let finalizers: BTreeSet<&str> =
        object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    Propagation::ALL.into_iter().find(|way| way.finalizer().is_some_and(|one| finalizers.contains(one)))
}

/// All objects that an owner's uid is written on. Events and leases are nobody's business.
fn dependents<'a>(
    uid: &'a str,
    ctx: &'a Ctx,
) -> impl Iterator<Item = (Kind, &'a std::sync::Arc<Value>)> + use<'a> {
    let kinds = Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Event | Kind::Lease));
    let all = kinds.flat_map(|kind| ctx.store.list(kind, None).map(move |object| (kind, object)));
    all.filter(move |(_, object)| owners(object).any(|owner| owner["uid"] == uid))
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

fn uid(owner: &Value) -> String {
    owner["uid"].as_str().unwrap_or_default().to_owned()
}

/// Whether an owner of an object is there. Those of kinds that are not stored here are taken as such.
fn is_there(owner: &Value, object: &Value, ctx: &Ctx) -> bool {
    named(owner, object).is_none_or(|(kind, namespace, name)| {
        ctx.store.get(kind, namespace, name).is_some_and(|there| there["metadata"]["uid"] == owner["uid"])
    })
}

/// Where an owner of an object would be.
fn named<'a>(owner: &'a Value, object: &'a Value) -> Option<(Kind, &'a str, &'a str)> {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    let kind = Kind::ALL.into_iter().find(|kind| kind.names() == (text("kind"), text("apiVersion")))?;
    let namespace = if kind.scope() == Scope::Namespaced { meta(object, "namespace") } else { "" };
    Some((kind, namespace, text("name")))
}

fn place(object: &Value) -> (String, String) {
    (meta(object, "namespace").to_owned(), meta(object, "name").to_owned())
}

fn disown(kind: Kind, namespace: &str, name: &str, uid: &str, ctx: &mut Ctx) {
    ctx.store.update(kind, namespace, name, |object| without_owner(object, uid));
}

/// Takes an owner from an object.
pub(super) fn without_owner(object: &mut Value, uid: &str) {
    let left: Vec<Value> = owners(object).filter(|owner| owner["uid"] != uid).cloned().collect();
    if !left.is_empty() {
        object["metadata"]["ownerReferences"] = left.into();
    } else if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.shift_remove("ownerReferences");
    }
}

fn delete(kind: Kind, namespace: &str, name: &str, propagation: Propagation, ctx: &mut Ctx) {
    let how = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    // What is gone meanwhile is as good as deleted.
    let _ = registry::delete(ctx, kind, namespace, name, how);
}
