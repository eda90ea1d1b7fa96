//! Garbage collector: deletes dependents of deleted owners (`pkg/controller/garbagecollector`).

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use super::context::{ControllerContext, ControllerTask};
use super::owners;
use crate::apiserver::{self, DeleteOptions, Propagation};
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};
use crate::storage::{ObjectChange, WatchEventType};

/// Delay until the collector handles an object.
const COLLECT_DELAY: Duration = Duration::from_millis(10);

/// Handles a change of an object, which may be a removed owner or have a missing one.
pub(super) fn handle_change(change: &ObjectChange, ctx: &mut ControllerContext) {
    let object = &change.object;
    let owners = object.owners();
    if change.event_type == WatchEventType::Deleted {
        let uid = object.uid().to_owned();
        if ctx.store.dependents(&uid).next().is_some() {
            ctx.schedule_after(COLLECT_DELAY, ControllerTask::DeleteOrphans(uid));
        }
    } else if change.before.as_ref().is_none_or(|before| before.owners() != owners) {
        for owner in
            owners.iter().filter(|owner| !owner_exists(owner, object, ctx)).cloned().collect::<Vec<_>>()
        {
            ctx.schedule_after(COLLECT_DELAY, ControllerTask::DeleteOrphans(owner.uid));
        }
    }
    // The owner may be waiting for its last dependent.
    let waiting = |object: &Value| object.is_deleting() && propagation(object).is_some();
    if waiting(object) && change.event_type != WatchEventType::Deleted {
        ctx.schedule_after(COLLECT_DELAY, delete_dependents(change.kind, object));
    }
    for owner in &owners {
        let found = owners::find(owner, object.namespace(), ctx).filter(|(_, owner)| waiting(owner));
        if let Some(task) = found.map(|(kind, owner)| delete_dependents(kind, owner)) {
            ctx.schedule_after(COLLECT_DELAY, task);
        }
    }
}

fn delete_dependents(kind: Kind, object: &Value) -> ControllerTask {
    let (namespace, name) = object.key();
    ControllerTask::DeleteDependents { kind, namespace, name }
}

/// Deletes the dependents of a missing owner; a dependent with another owner only loses the
/// reference.
pub(super) fn collect(owner_uid: &str, ctx: &mut ControllerContext) {
    let all: Vec<_> = ctx.store.dependents(owner_uid).map(|(kind, object)| (kind, object.clone())).collect();
    for (kind, object) in all {
        let (namespace, name) = (object.namespace(), object.name());
        if object.owners().iter().any(|owner| owner.uid != owner_uid && owner_exists(owner, &object, ctx)) {
            disown(kind, namespace, name, owner_uid, ctx);
        } else {
            delete(kind, namespace, name, Propagation::Background, ctx);
        }
    }
}

/// Deletes or orphans the dependents of an object that is being deleted, then removes its
/// finalizer.
pub(super) fn collect_dependents(
    kind: Kind,
    (namespace, name): &(String, String),
    ctx: &mut ControllerContext,
) {
    let Some(object) = ctx.store.get(kind, namespace, name).cloned() else { return };
    let Some(policy) = propagation(&object).filter(|_| object.is_deleting()) else {
        return;
    };
    let uid = object.uid();
    let all: Vec<_> = ctx.store.dependents(uid).map(|(kind, object)| (kind, object.clone())).collect();
    let mut blocked = false;
    for (kind, dependent) in &all {
        let (namespace, name) = (dependent.namespace(), dependent.name());
        if policy == Propagation::Orphan {
            disown(*kind, namespace, name, uid, ctx);
            continue;
        }
        if !dependent.is_deleting() {
            delete(*kind, namespace, name, policy, ctx);
        }
        let blocks = |owner: &OwnerReference| owner.uid == uid && owner.block_owner_deletion == Some(true);
        blocked |= dependent.owners().iter().any(blocks) && ctx.store.get(*kind, namespace, name).is_some();
    }
    if !blocked && let Some(finalizer) = policy.finalizer() {
        apiserver::remove_finalizer(ctx, kind, namespace, name, finalizer);
    }
}

/// Returns the propagation policy of an object that is being deleted, according to its finalizers.
fn propagation(object: &Value) -> Option<Propagation> {
    let finalizers: BTreeSet<&str> = object.finalizers().collect();
    Propagation::ALL.into_iter().find(|policy| policy.finalizer().is_some_and(|one| finalizers.contains(one)))
}

/// Returns whether an owner of an object exists. Owners of unknown kinds are assumed to exist.
fn owner_exists(owner: &OwnerReference, object: &Value, ctx: &SimContext) -> bool {
    owners::kind(owner).is_none() || owners::find(owner, object.namespace(), ctx).is_some()
}

fn disown(kind: Kind, namespace: &str, name: &str, uid: &str, ctx: &mut ControllerContext) {
    ctx.store.update(kind, namespace, name, |object| owners::remove(object, uid));
}

fn delete(kind: Kind, namespace: &str, name: &str, propagation: Propagation, ctx: &mut ControllerContext) {
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    // An object that is already gone needs no deletion.
    let _ = apiserver::delete(ctx, kind, namespace, name, options);
}
