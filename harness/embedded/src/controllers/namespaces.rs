//! Namespaces: default objects, and deletion of contents.

use std::time::Duration;

use rand::RngExt;
use serde_json::json;

use super::context::{ControllerContext, ControllerTask};
use crate::apiserver::{self, DeleteOptions, FieldValidation};
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt, Scope};
use crate::storage::{ObjectChange, WatchEventType};

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";

/// Delay until default objects are created, in milliseconds.
const CREATE_DEFAULTS: std::ops::Range<u64> = 3..9;

/// Delay between two passes of the namespace controller.
const EMPTY: Duration = Duration::from_millis(20);

/// Handles a change of a namespace or of an object in it.
pub(super) fn handle_change(change: &ObjectChange, ctx: &mut ControllerContext) {
    let object = &change.object;
    match (change.kind, change.event_type) {
        (Kind::Namespace, WatchEventType::Deleted) => {}
        (Kind::Namespace, _) if object.phase() == "Terminating" => {
            ctx.schedule_after(EMPTY, ControllerTask::EmptyNamespace(object.name().to_owned()));
        }
        (Kind::Namespace, WatchEventType::Added) => create_defaults_soon(object.name(), ctx),
        (Kind::ServiceAccount | Kind::ConfigMap, WatchEventType::Deleted)
            if [ACCOUNT, ROOT_CA].contains(&object.name()) =>
        {
            create_defaults_soon(object.namespace(), ctx);
        }
        (Kind::Pod, WatchEventType::Deleted) => {
            let namespace = object.namespace();
            if is_terminating(namespace, ctx) {
                ctx.schedule_after(EMPTY, ControllerTask::EmptyNamespace(namespace.to_owned()));
            }
        }
        _ => {}
    }
}

/// Creates the default service account and ConfigMap of a namespace.
pub(super) fn create_defaults(namespace: &str, ctx: &mut ControllerContext) {
    let root_ca = json!({
        "metadata": {
            "name": ROOT_CA,
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
            },
        },
        // Pods of the model do not use the API.
        "data": {"ca.crt": ""},
    });
    let account = json!({"metadata": {"name": ACCOUNT}});
    for (kind, object) in [(Kind::ServiceAccount, account), (Kind::ConfigMap, root_ca)] {
        if ctx.store.get(kind, namespace, object.name()).is_none() {
            // Fails if the namespace is terminating, which needs no default objects.
            let _ = apiserver::create(ctx, kind, namespace, object, FieldValidation::default());
        }
    }
}

/// Deletes the contents of a namespace, and then the namespace.
pub(super) fn empty(namespace: &str, ctx: &mut ControllerContext) {
    if !is_terminating(namespace, ctx) {
        return;
    }
    let kinds = || Kind::ALL.into_iter().filter(|kind| kind.scope() == Scope::Namespaced);
    for kind in kinds() {
        let names: Vec<_> =
            ctx.store.list(kind, Some(namespace)).map(|object| object.name().to_owned()).collect();
        for name in names {
            // An object that is already gone needs no deletion.
            let _ = apiserver::delete(ctx, kind, namespace, &name, DeleteOptions::default());
        }
    }
    if kinds().any(|kind| ctx.store.list(kind, Some(namespace)).next().is_some()) {
        // A pod with a grace period triggers the next pass when it is gone; other objects wait for
        // the owner of their finalizer.
        const AGAIN: Duration = Duration::from_secs(5);
        ctx.schedule_after(AGAIN, ControllerTask::EmptyNamespace(namespace.to_owned()));
        return;
    }
    let object = ctx.store.get(Kind::Namespace, "", namespace);
    if object.is_none_or(|object| object.finalizers().next().is_none()) {
        ctx.store.remove(Kind::Namespace, "", namespace);
    }
}

fn create_defaults_soon(namespace: &str, ctx: &mut ControllerContext) {
    let wait = Duration::from_millis(ctx.rng.random_range(CREATE_DEFAULTS));
    ctx.schedule_after(wait, ControllerTask::CreateDefaults(namespace.to_owned()));
}

fn is_terminating(namespace: &str, ctx: &SimContext) -> bool {
    let object = ctx.store.get(Kind::Namespace, "", namespace);
    object.is_some_and(|object| object.phase() == "Terminating")
}
