//! Garbage collector: deletes dependents of deleted owners (`pkg/controller/garbagecollector`).

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use super::context::{ControllerContext, ControllerTask};
use super::owners;
use crate::apiserver::{self, DeleteOptions, FOREGROUND_FINALIZER};
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
    if waits_for_dependents(object) && change.event_type != WatchEventType::Deleted {
        ctx.schedule_after(COLLECT_DELAY, delete_dependents(change.kind, object));
    }
    for owner in &owners {
        let found =
            owners::find(owner, object.namespace(), ctx).filter(|(_, owner)| waits_for_dependents(owner));
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
            ctx.store.update(kind, namespace, name, |object| owners::remove(object, owner_uid));
        } else {
            delete(kind, namespace, name, false, ctx);
        }
    }
}

/// Deletes the dependents of an object that waits for their end, then removes its finalizer.
pub(super) fn collect_dependents(
    kind: Kind,
    (namespace, name): &(String, String),
    ctx: &mut ControllerContext,
) {
    let Some(object) = ctx.store.get(kind, namespace, name).cloned() else { return };
    if !waits_for_dependents(&object) {
        return;
    }
    let uid = object.uid();
    let all: Vec<_> = ctx.store.dependents(uid).map(|(kind, object)| (kind, object.clone())).collect();
    let mut blocked = false;
    for (kind, dependent) in &all {
        let (namespace, name) = (dependent.namespace(), dependent.name());
        if !dependent.is_deleting() {
            delete(*kind, namespace, name, true, ctx);
        }
        let blocks = |owner: &OwnerReference| owner.uid == uid && owner.block_owner_deletion == Some(true);
        blocked |= dependent.owners().iter().any(blocks) && ctx.store.get(*kind, namespace, name).is_some();
    }
    if !blocked {
        apiserver::remove_finalizer(ctx, kind, namespace, name, FOREGROUND_FINALIZER);
    }
}

/// Returns whether an object is deleted after its dependents.
fn waits_for_dependents(object: &Value) -> bool {
    object.is_deleting() && object.finalizers().any(|finalizer| finalizer == FOREGROUND_FINALIZER)
}

/// Returns whether an owner of an object exists. Owners of unknown kinds are assumed to exist.
fn owner_exists(owner: &OwnerReference, object: &Value, ctx: &SimContext) -> bool {
    owners::kind(owner).is_none() || owners::find(owner, object.namespace(), ctx).is_some()
}

fn delete(kind: Kind, namespace: &str, name: &str, foreground: bool, ctx: &mut ControllerContext) {
    let options = DeleteOptions { foreground, ..DeleteOptions::default() };
    // An object that is already gone needs no deletion.
    let _ = apiserver::delete(ctx, kind, namespace, name, options);
}
