//! The pods of a controller: which are its own, how they are made and deleted (`controller_utils.go`, `controller_ref_manager.go`).

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::events::{Recorder, Told, Weight};
use super::super::garbage::without_owner;
use super::super::{has_ended, meta};
use super::{about, controller, owned_by, reference};
use crate::registry::{self, Create, DeleteOptions, Status, condition, selector};
use crate::store::Kind;
use crate::world::Ctx;

/// Whose pods, and who tells of them.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) kind: Kind,
    pub(super) object: &'a Value,
    /// Such as `replicaset-controller`.
    pub(super) component: &'static str,
}

impl Owner<'_> {
    /// An event about it.
    pub(super) fn tell(
        &self,
        weight: Weight,
        reason: &str,
        message: &str,
        recorder: &mut Recorder,
        ctx: &mut Ctx,
    ) {
        let told = Told { weight, reason, message };
        recorder.tell(ctx, self.component, about(self.kind, self.object), told);
    }

    /// Its pods (`ClaimPods`): orphans that it selects are adopted, with a finalizer if it wants one, and those that it no longer selects are
    /// released.
    pub(super) fn claim(&self, finalizer: Option<&str>, ctx: &mut Ctx) -> Vec<Arc<Value>> {
        let (namespace, uid) = (meta(self.object, "namespace"), meta(self.object, "uid"));
        let may_adopt = self.object["metadata"]["deletionTimestamp"].is_null();
        let all: Vec<_> = ctx.store.list(Kind::Pod, Some(namespace)).cloned().collect();
        let mut own = Vec::new();
        for pod in all {
            let (mine, wanted) = (owned_by(&pod, uid), selects(self.object, &pod));
            let name = meta(&pod, "name");
            if mine && wanted {
                own.push(pod);
            } else if mine {
                ctx.store.update(Kind::Pod, namespace, name, |pod| without_owner(pod, uid));
            } else if wanted && controller(&pod).is_none() && may_adopt && is_active(&pod) {
                let reference = reference(self.kind, self.object);
                own.extend(ctx.store.update(Kind::Pod, namespace, name, |pod| {
                    push(&mut pod["metadata"], "ownerReferences", reference);
                    if let Some(finalizer) = finalizer {
                        push(&mut pod["metadata"], "finalizers", json!(finalizer));
                    }
                }));
            }
        }
        own
    }

    /// Makes a pod of its template.
    pub(super) fn create(
        &self,
        finalizer: Option<&str>,
        recorder: &mut Recorder,
        ctx: &mut Ctx,
    ) -> Result<(), Status> {
        let template = &self.object["spec"]["template"];
        let mut metadata = json!({
            "generateName": format!("{}-", meta(self.object, "name")),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "finalizers": template["metadata"]["finalizers"],
            "ownerReferences": [reference(self.kind, self.object)],
        });
        if let Some(finalizer) = finalizer {
            push(&mut metadata, "finalizers", json!(finalizer));
        }
        let pod = json!({"metadata": metadata, "spec": template["spec"]});
        match registry::create(ctx, Kind::Pod, meta(self.object, "namespace"), pod, Create::default()) {
            Ok((pod, _)) => {
                let message = format!("Created pod: {}", meta(&pod, "name"));
                self.tell(Weight::Normal, "SuccessfulCreate", &message, recorder, ctx);
                Ok(())
            }
            // Nothing is wrong with that, and nothing can be done.
            Err(status) if is_terminating(&status) => Ok(()),
            Err(status) => {
                let message = format!("Error creating: {}", status.message);
                self.tell(Weight::Warning, "FailedCreate", &message, recorder, ctx);
                Err(status)
            }
        }
    }

    /// Deletes one of its pods.
    pub(super) fn delete(&self, pod: &Value, recorder: &mut Recorder, ctx: &mut Ctx) {
        let name = meta(pod, "name");
        let gracefully = DeleteOptions::default();
        // What is gone meanwhile is as good as deleted.
        if registry::delete(ctx, Kind::Pod, meta(pod, "namespace"), name, gracefully).is_ok() {
            let message = format!("Deleted pod: {name}");
            self.tell(Weight::Normal, "SuccessfulDelete", &message, recorder, ctx);
        }
    }
}

/// Whether a controller's selector wants a pod.
pub(super) fn selects(owner: &Value, pod: &Value) -> bool {
    selector::matches(&owner["spec"]["selector"], &pod["metadata"]["labels"])
}

/// Whether a pod counts as one that runs or will (`IsPodActive`).
pub(super) fn is_active(pod: &Value) -> bool {
    !has_ended(pod) && pod["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a pod is about to end (`IsPodTerminating`).
pub(super) fn is_terminating_pod(pod: &Value) -> bool {
    !has_ended(pod) && !pod["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition::status(pod, "Ready") == "True"
}

/// The order in which active pods are deleted when there are too many (`ActivePodsWithRanks`): those without a node, those that do not run
/// yet, those that are not ready, those of a lower `pod-deletion-cost`, those that were ready last, those that are youngest.
pub(super) fn dispensable(pod: &Value) -> impl Ord + use<> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let phase = ["Pending", "Unknown", "Running"].iter().position(|phase| pod["status"]["phase"] == *phase);
    let cost = &pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"];
    let ready = condition::find(pod, "Ready").filter(|_| is_ready(pod));
    (
        !super::super::node_of(pod).is_empty(),
        phase,
        is_ready(pod),
        text(cost).parse::<i64>().unwrap_or(0),
        std::cmp::Reverse(ready.map(|ready| text(&ready["lastTransitionTime"]))),
        std::cmp::Reverse(text(&pod["metadata"]["creationTimestamp"])),
        text(&pod["metadata"]["uid"]),
    )
}

fn is_terminating(status: &Status) -> bool {
    let causes = status.details.as_ref().and_then(|details| details["causes"].as_array());
    causes.into_iter().flatten().any(|cause| cause["reason"] == "NamespaceTerminating")
}

fn push(value: &mut Value, list: &str, item: Value) {
    match &mut value[list] {
        Value::Array(items) if items.contains(&item) => {}
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}
