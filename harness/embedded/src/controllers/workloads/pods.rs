//! Pods of a controller: adoption, creation and deletion (`controller_utils.go`,
//! `controller_ref_manager.go`).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apiserver::{self, DeleteOptions, Status, WriteOptions};
use crate::controllers::context::ControllerContext;
use crate::controllers::garbage_collector::without_owner;
use crate::controllers::recorder;
use crate::resource::{EventBody, Kind, ObjectExt, label_selector};

/// Controller of pods.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) kind: Kind,
    pub(super) object: &'a Value,
    /// Name in events, such as `replicaset-controller`.
    pub(super) component: &'static str,
}

impl Owner<'_> {
    /// Records an event about the controller's object.
    pub(super) fn record_event(&self, event: EventBody, ctx: &mut ControllerContext) {
        ctx.record(self.component, recorder::object_reference(self.kind, self.object), event);
    }

    /// Returns the pods of the controller (`ClaimPods`). Adopts matching orphans, which get the
    /// finalizer, and releases pods that no longer match.
    pub(super) fn claim(&self, finalizer: Option<&str>, ctx: &mut ControllerContext) -> Vec<Arc<Value>> {
        let (namespace, uid) = (self.object.namespace(), self.object.uid());
        let may_adopt = !self.object.is_deleting();
        let all: Vec<_> = ctx.store.list(Kind::Pod, Some(namespace)).cloned().collect();
        let mut own = Vec::new();
        for pod in all {
            let (mine, wanted) = (pod.is_controlled_by(uid), selects(self.object, &pod));
            let name = pod.name();
            if mine && wanted {
                own.push(pod);
            } else if mine {
                ctx.store.update(Kind::Pod, namespace, name, |pod| without_owner(pod, uid));
            } else if wanted && pod.controller().is_none() && may_adopt && is_active(&pod) {
                let reference = reference(self.kind, self.object);
                own.extend(ctx.store.update(Kind::Pod, namespace, name, |pod| {
                    pod["metadata"].push("ownerReferences", reference);
                    if let Some(finalizer) = finalizer {
                        pod["metadata"].push("finalizers", json!(finalizer));
                    }
                }));
            }
        }
        own
    }

    /// Creates a pod from the template.
    pub(super) fn create(&self, finalizer: Option<&str>, ctx: &mut ControllerContext) -> Result<(), Status> {
        let template = &self.object["spec"]["template"];
        let mut metadata = json!({
            "generateName": format!("{}-", self.object.name()),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "finalizers": template["metadata"]["finalizers"],
            "ownerReferences": [reference(self.kind, self.object)],
        });
        if let Some(finalizer) = finalizer {
            metadata.push("finalizers", json!(finalizer));
        }
        let pod = json!({"metadata": metadata, "spec": template["spec"]});
        match apiserver::create(ctx, Kind::Pod, self.object.namespace(), pod, WriteOptions::default()) {
            Ok((pod, _)) => {
                let message = format!("Created pod: {}", pod.name());
                self.record_event(EventBody::normal("SuccessfulCreate", &message), ctx);
                Ok(())
            }
            // The namespace is terminating, which is not an error.
            Err(status) if is_terminating(&status) => Ok(()),
            Err(status) => {
                let message = format!("Error creating: {}", status.message);
                self.record_event(EventBody::warning("FailedCreate", &message), ctx);
                Err(status)
            }
        }
    }

    /// Deletes a pod.
    pub(super) fn delete(&self, pod: &Value, ctx: &mut ControllerContext) {
        let name = pod.name();
        let gracefully = DeleteOptions::default();
        // A pod that is already gone needs no deletion.
        if apiserver::delete(ctx, Kind::Pod, pod.namespace(), name, gracefully).is_ok() {
            let message = format!("Deleted pod: {name}");
            self.record_event(EventBody::normal("SuccessfulDelete", &message), ctx);
        }
    }
}

/// Returns whether a controller's selector matches a pod.
pub(super) fn selects(owner: &Value, pod: &Value) -> bool {
    label_selector::matches(&owner["spec"]["selector"], pod.labels())
}

/// Returns whether a pod is pending or running, and not being deleted (`IsPodActive`).
pub(super) fn is_active(pod: &Value) -> bool {
    !pod.is_terminal() && !pod.is_deleting()
}

/// Returns whether a pod is being deleted (`IsPodTerminating`).
pub(super) fn is_terminating_pod(pod: &Value) -> bool {
    !pod.is_terminal() && pod.is_deleting()
}

/// Returns a key that orders pods for scale-down, first to delete first (`ActivePodsWithRanks`):
/// unassigned, not running, not ready, low `pod-deletion-cost`, recently ready, young.
pub(super) fn deletion_key(pod: &Value) -> impl Ord + use<> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let phase = ["Pending", "Unknown", "Running"].iter().position(|phase| pod.phase() == *phase);
    let cost = &pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"];
    let ready = pod.condition("Ready").filter(|_| pod.has_condition("Ready"));
    (
        !pod.node_name().is_empty(),
        phase,
        pod.has_condition("Ready"),
        text(cost).parse::<i64>().unwrap_or(0),
        std::cmp::Reverse(ready.map(|ready| text(&ready["lastTransitionTime"]))),
        std::cmp::Reverse(text(&pod["metadata"]["creationTimestamp"])),
        text(&pod["metadata"]["uid"]),
    )
}

fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    causes.into_iter().any(|cause| cause.reason.as_deref() == Some("NamespaceTerminating"))
}

/// Creates a controller reference (`metav1.NewControllerRef`).
pub(super) fn reference(kind: Kind, owner: &Value) -> Value {
    let (name, version) = kind.names();
    json!({
        "apiVersion": version,
        "kind": name,
        "name": owner.name(),
        "uid": owner.uid(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}
