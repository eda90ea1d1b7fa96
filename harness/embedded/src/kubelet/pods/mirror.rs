//! Mirror pods: API objects of static pods (`pkg/kubelet/pod/mirror_client.go`).

use std::sync::Arc;

use evictlab_rules::pod::{CONFIG_MIRROR_ANNOTATION, CONFIG_SOURCE_ANNOTATION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use super::spec::{KnownFields, Manifest};
use super::worker::Worker;
use crate::apiserver::{self, DeleteOptions, FieldValidation, Preconditions};
use crate::context::SimContext;
use crate::kubelet::event::PodEvent;
use crate::kubelet::state::Kubelet;
use crate::resource::{Kind, ObjectExt};
use crate::storage::{ObjectChange, WatchEventType};

/// Returns whether a pod is static.
pub(super) fn is_static(object: &Value) -> bool {
    object.annotation(CONFIG_SOURCE_ANNOTATION) == Some("file")
}

/// Returns a pod of the API server with this source in its annotation: another one would make it
/// static (`updatePodsFunc` of `pkg/kubelet/config/config.go`).
pub(super) fn from_api(object: Arc<Value>) -> Arc<Value> {
    if object.annotation(CONFIG_SOURCE_ANNOTATION).is_none_or(|source| source == "api") {
        return object;
    }
    let mut own = Value::clone(&object);
    own.set_annotation(CONFIG_SOURCE_ANNOTATION, "api");
    Arc::new(own)
}

/// Returns the hash of the static pod that a mirror pod represents.
pub(super) fn hash_of(object: &Value) -> Option<&str> {
    object.annotation(CONFIG_MIRROR_ANNOTATION)
}

/// Deletes a mirror pod with a given hash, or with any hash.
pub(super) fn delete(manifest: &Manifest, hash: Option<&str>, ctx: &mut SimContext) {
    let Some(mirror) = ctx.store.get(Kind::Pod, &manifest.namespace, &manifest.name).cloned() else { return };
    if hash_of(&mirror).is_none() || hash.is_some_and(|hash| hash_of(&mirror) != Some(hash)) {
        return;
    }
    let uid = Some(mirror.uid().to_owned());
    let options = DeleteOptions {
        grace: Some(0),
        preconditions: Preconditions { uid, resource_version: None },
        ..DeleteOptions::default()
    };
    // The object was read in the same step, so it exists.
    let _ = apiserver::delete(ctx, Kind::Pod, &manifest.namespace, &manifest.name, options);
}

impl Kubelet {
    /// Creates the mirror pod of a static pod, and deletes an outdated one
    /// (`tryReconcileMirrorPods`).
    pub(super) fn mirror(&mut self, worker: &mut Worker, ctx: &mut SimContext) {
        if !is_static(&worker.object) || worker.removed {
            return;
        }
        let Manifest { namespace, name, uid, .. } = &worker.manifest;
        if let Some(existing) = ctx.store.get(Kind::Pod, namespace, name) {
            let deleted = existing.is_deleting();
            match hash_of(existing) {
                Some(hash) if hash == uid && !deleted => return,
                Some(_) => delete(&worker.manifest, None, ctx),
                // Another pod has the name.
                None => return,
            }
        }
        let Some(node) = ctx.store.get(Kind::Node, "", &self.options.name) else { return };
        let owner = OwnerReference { controller: Some(true), ..self.as_owner(node) };
        let mut pod = Value::clone(&worker.object);
        pod.set_annotation(CONFIG_MIRROR_ANNOTATION, uid);
        pod.metadata_mut().write("ownerReferences", [owner]);
        // While the namespace is missing, the next sync tries again.
        if apiserver::create(ctx, Kind::Pod, namespace, pod, FieldValidation::default()).is_ok() {
            self.send_status(worker, ctx);
        }
    }

    /// Handles a change of a mirror pod: a deleted one is created again while its static pod
    /// exists. Returns whether the object is a mirror pod.
    pub(super) fn mirror_changed(&mut self, change: &ObjectChange, ctx: &mut SimContext) -> bool {
        let Some(hash) = hash_of(&change.object) else { return false };
        let is_removed = change.event_type == WatchEventType::Deleted || change.object.is_deleting();
        if is_removed && self.pods.workers.contains_key(hash) {
            self.schedule_pod(ctx.now, PodEvent::Mirror(hash.to_owned()), ctx);
        }
        true
    }

    /// Deletes mirror pods without a static pod (`deleteOrphanedMirrorPods`).
    pub(super) fn delete_orphaned_mirrors(&self, ctx: &mut SimContext) {
        let own = ctx.store.pods_on(&self.options.name);
        let known = |pod: &Value| hash_of(pod).is_none_or(|hash| self.pods.workers.contains_key(hash));
        let orphans: Vec<Manifest> =
            own.filter(|pod| !known(pod)).map(|pod| Manifest::read(pod, KnownFields::ALL)).collect();
        for orphan in orphans {
            delete(&orphan, None, ctx);
        }
    }
}
