//! Mirror pods: what the API shows of static ones (`pkg/kubelet/pod/mirror_client.go`).

use serde_json::{Value, json};

use super::spec::Manifest;
use super::statics::is_static;
use super::worker::Worker;
use super::{Kubelet, PodsEvent};
use crate::registry::{self, Create, DeleteOptions, Preconditions};
use crate::store::{Change, ChangeKind, Kind};
use crate::world::Ctx;

/// Whose hash is on it is mirrored by it.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The hash of the static pod that a pod mirrors, if it does.
pub(super) fn of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][MIRROR].as_str()
}

/// Takes a pod's mirror out of the API, if it is that of a hash, or of any.
pub(super) fn delete(manifest: &Manifest, hash: Option<&str>, ctx: &mut Ctx) {
    let Some(mirror) = ctx.store.get(Kind::Pod, &manifest.namespace, &manifest.name).cloned() else { return };
    if of(&mirror).is_none() || hash.is_some_and(|hash| of(&mirror) != Some(hash)) {
        return;
    }
    let uid = mirror["metadata"]["uid"].as_str().map(str::to_owned);
    let how = DeleteOptions {
        grace: Some(0),
        preconditions: Preconditions { uid, resource_version: None },
        ..DeleteOptions::default()
    };
    // It was there a line ago.
    let _ = registry::delete(ctx, Kind::Pod, &manifest.namespace, &manifest.name, how);
}

impl Kubelet {
    /// Sees that a static pod has its mirror, and no other than its own (`tryReconcileMirrorPods`).
    pub(super) fn mirror(&mut self, worker: &mut Worker, ctx: &mut Ctx) {
        if !is_static(&worker.object) || worker.gone {
            return;
        }
        let Manifest { namespace, name, uid, .. } = &worker.manifest;
        if let Some(there) = ctx.store.get(Kind::Pod, namespace, name) {
            let deleted = !there["metadata"]["deletionTimestamp"].is_null();
            match of(there) {
                Some(hash) if hash == uid && !deleted => return,
                Some(_) => delete(&worker.manifest, None, ctx),
                // Somebody else's pod has the name.
                None => return,
            }
        }
        let Some(node) = ctx.store.get(Kind::Node, "", &self.identity.node) else { return };
        let owner = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "name": self.identity.node,
            "uid": node["metadata"]["uid"],
            "controller": true,
        });
        let mut pod = Value::clone(&worker.object);
        pod["metadata"]["annotations"][MIRROR] = json!(uid);
        pod["metadata"]["ownerReferences"] = json!([owner]);
        // Where it is not there yet, its namespace is waited for: the next look at the pod tries again.
        if registry::create(ctx, Kind::Pod, namespace, pod, Create::default()).is_ok() {
            self.send_status(worker, ctx);
        }
    }

    /// A mirror has changed: one that goes is made anew as long as there is what it mirrors. Whether it is one.
    pub(super) fn mirror_changed(&self, change: &Change, ctx: &mut Ctx) -> bool {
        let Some(hash) = of(&change.object) else { return false };
        let goes =
            change.what == ChangeKind::Deleted || !change.object["metadata"]["deletionTimestamp"].is_null();
        if goes && self.pods.workers.contains_key(hash) {
            ctx.agenda.at(ctx.now, self.due(PodsEvent::Mirror(hash.to_owned())));
        }
        true
    }

    /// Takes mirrors out of the API of which there is no static pod here (`deleteOrphanedMirrorPods`).
    pub(super) fn delete_orphaned_mirrors(&self, ctx: &mut Ctx) {
        let own = ctx.store.list(Kind::Pod, None).filter(|pod| self.is_own(pod));
        let known = |pod: &Value| of(pod).is_none_or(|hash| self.pods.workers.contains_key(hash));
        let orphans: Vec<Manifest> =
            own.filter(|pod| !known(pod)).map(|pod| Manifest::read(pod, true)).collect();
        for orphan in orphans {
            delete(&orphan, None, ctx);
        }
    }
}
