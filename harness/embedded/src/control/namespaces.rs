//! Namespaces: what they get when they are made, what becomes of their contents when they are deleted.

use std::time::Duration;

use rand::RngExt;
use serde_json::json;

use super::{ControlEvent, after, meta};
use crate::registry::{self, Create, DeleteOptions, Propagation};
use crate::store::{Change, ChangeKind, Kind, Scope};
use crate::world::Ctx;

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";

/// How long the controllers need to furnish a namespace, in milliseconds.
const FURNISH: std::ops::Range<u64> = 3..9;

/// How long the namespace controller needs for a pass.
const EMPTY: Duration = Duration::from_millis(20);

/// A namespace has changed, or what is in it.
pub(super) fn changed(change: &Change, ctx: &mut Ctx) {
    let object = &change.object;
    match (change.kind, change.what) {
        (Kind::Namespace, ChangeKind::Deleted) => {}
        (Kind::Namespace, _) if object["status"]["phase"] == "Terminating" => {
            after(ctx, EMPTY, ControlEvent::Empty(meta(object, "name").to_owned()));
        }
        (Kind::Namespace, ChangeKind::Added) => furnish_soon(meta(object, "name"), ctx),
        (Kind::ServiceAccount | Kind::ConfigMap, ChangeKind::Deleted)
            if [ACCOUNT, ROOT_CA].contains(&meta(object, "name")) =>
        {
            furnish_soon(meta(object, "namespace"), ctx);
        }
        (Kind::Pod, ChangeKind::Deleted) => {
            let namespace = meta(object, "namespace");
            if is_terminating(namespace, ctx) {
                after(ctx, EMPTY, ControlEvent::Empty(namespace.to_owned()));
            }
        }
        _ => {}
    }
}

/// Makes the service account and the config map that every namespace has.
pub(super) fn furnish(namespace: &str, ctx: &mut Ctx) {
    let root_ca = json!({
        "metadata": {
            "name": ROOT_CA,
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
            },
        },
        // No process of a pod here speaks with the API.
        "data": {"ca.crt": ""},
    });
    let account = json!({"metadata": {"name": ACCOUNT}});
    for (kind, object) in [(Kind::ServiceAccount, account), (Kind::ConfigMap, root_ca)] {
        if ctx.store.get(kind, namespace, meta(&object, "name")).is_none() {
            // The namespace may be gone, or going: then it needs nothing.
            let _ = registry::create(ctx, kind, namespace, object, Create::default());
        }
    }
}

/// Deletes what is in a namespace, and the namespace when nothing is.
pub(super) fn empty(namespace: &str, ctx: &mut Ctx) {
    if !is_terminating(namespace, ctx) {
        return;
    }
    let kinds = || Kind::ALL.into_iter().filter(|kind| kind.scope() == Scope::Namespaced);
    for kind in kinds() {
        let names: Vec<_> =
            ctx.store.list(kind, Some(namespace)).map(|object| meta(object, "name").to_owned()).collect();
        for name in names {
            // What is gone meanwhile is as good as deleted.
            let how =
                DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
            let _ = registry::delete(ctx, kind, namespace, &name, how);
        }
    }
    if kinds().any(|kind| ctx.store.list(kind, Some(namespace)).next().is_some()) {
        // Pods with a grace period: the next pass is when one is gone. Anything else waits for whoever has a finalizer on it.
        const AGAIN: Duration = Duration::from_secs(5);
        after(ctx, AGAIN, ControlEvent::Empty(namespace.to_owned()));
        return;
    }
    let finalizers = |object: &std::sync::Arc<serde_json::Value>| {
        object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
    };
    if !ctx.store.get(Kind::Namespace, "", namespace).is_some_and(finalizers) {
        ctx.store.remove(Kind::Namespace, "", namespace);
    }
}

fn furnish_soon(namespace: &str, ctx: &mut Ctx) {
    let wait = Duration::from_millis(ctx.rng.random_range(FURNISH));
    after(ctx, wait, ControlEvent::Furnish(namespace.to_owned()));
}

fn is_terminating(namespace: &str, ctx: &Ctx) -> bool {
    let object = ctx.store.get(Kind::Namespace, "", namespace);
    object.is_some_and(|object| object["status"]["phase"] == "Terminating")
}
