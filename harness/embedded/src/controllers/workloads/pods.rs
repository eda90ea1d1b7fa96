//! Pods of a controller: adoption, creation and deletion (`controller_utils.go`,
//! `controller_ref_manager.go`).

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde_json::{Value, json};

use super::workload_spec::PodTemplateSpec;
use crate::apiserver::{self, DeleteOptions, FieldValidation, Status};
use crate::controllers::context::ControllerContext;
use crate::controllers::{owners, recorder};
use crate::resource::pod_status::ConditionStatus;
use crate::resource::{EventBody, Kind, ObjectExt, Phase, PodStatus, label_selector};

/// Controller of pods.
#[derive(Clone, Copy)]
pub(super) struct PodController<'a> {
    pub(super) kind: Kind,
    pub(super) object: &'a Value,
    /// Name in events, such as `replicaset-controller`.
    pub(super) component: &'static str,
}

impl PodController<'_> {
    /// Records an event about the controller's object.
    pub(super) fn record_event(&self, event: EventBody, ctx: &mut ControllerContext) {
        ctx.record(self.component, recorder::object_reference(self.kind, self.object), event);
    }

    /// Returns the pods of the controller (`ClaimPods`). Adopts matching orphans, and
    /// releases pods that no longer match.
    pub(super) fn claim(&self, ctx: &mut ControllerContext) -> Vec<Arc<Value>> {
        let (namespace, uid) = (self.object.namespace(), self.object.uid());
        let may_adopt = !self.object.is_deleting();
        let selector = label_selector::of(self.object);
        let all: Vec<_> = ctx.store.list(Kind::Pod, Some(namespace)).cloned().collect();
        let mut own = Vec::new();
        for pod in all {
            let is_controlled = pod.is_controlled_by(uid);
            let matches_selector = label_selector::matches(selector.as_ref(), pod.labels());
            let name = pod.name();
            if is_controlled && matches_selector {
                own.push(pod);
            } else if is_controlled {
                ctx.store.update(Kind::Pod, namespace, name, |pod| owners::remove(pod, uid));
            } else if matches_selector && pod.controller().is_none() && may_adopt && is_active(&pod) {
                let reference = owners::controller_reference(self.kind, self.object);
                own.extend(ctx.store.update(Kind::Pod, namespace, name, |pod| {
                    let add = |all: &mut Vec<OwnerReference>| all.push(reference);
                    pod.metadata_mut().change("ownerReferences", add);
                }));
            }
        }
        own
    }

    /// Creates a pod from a template.
    pub(super) fn create(
        &self,
        template: &PodTemplateSpec,
        ctx: &mut ControllerContext,
    ) -> Result<(), Status> {
        let finalizers = template.metadata.finalizers.clone().unwrap_or_default();
        let metadata = ObjectMeta {
            generate_name: Some(format!("{}-", self.object.name())),
            labels: template.metadata.labels.clone(),
            annotations: template.metadata.annotations.clone(),
            finalizers: Some(finalizers),
            owner_references: Some(vec![owners::controller_reference(self.kind, self.object)]),
            ..ObjectMeta::default()
        };
        let pod = json!({"metadata": metadata, "spec": template.spec});
        match apiserver::create(ctx, Kind::Pod, self.object.namespace(), pod, FieldValidation::default()) {
            Ok(stored) => {
                let message = format!("Created pod: {}", stored.object.name());
                self.record_event(EventBody::normal("SuccessfulCreate", &message), ctx);
                Ok(())
            }
            // The namespace is terminating, which is not an error.
            Err(status) if is_namespace_terminating(&status) => Ok(()),
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
        // A pod that is already gone needs no deletion.
        if apiserver::delete(ctx, Kind::Pod, pod.namespace(), name, DeleteOptions::default()).is_ok() {
            let message = format!("Deleted pod: {name}");
            self.record_event(EventBody::normal("SuccessfulDelete", &message), ctx);
        }
    }
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
/// unassigned, not running, not ready, recently ready, young.
pub(super) fn deletion_key(pod: &Value) -> impl Ord + use<> {
    let status = PodStatus::of(pod);
    let phase = [Phase::Pending, Phase::Unknown, Phase::Running]
        .iter()
        .position(|phase| status.phase == Some(*phase));
    let ready = status.condition("Ready").filter(|ready| ready.status == ConditionStatus::True);
    let since = |time: &Option<Time>| time.as_ref().map(|time| time.0);
    (
        !pod.node_name().is_empty(),
        phase,
        ready.is_some(),
        std::cmp::Reverse(ready.and_then(|ready| since(&ready.last_transition_time))),
        std::cmp::Reverse(pod.created()),
        pod.uid().to_owned(),
    )
}

fn is_namespace_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    causes.into_iter().any(|cause| cause.reason.as_deref() == Some("NamespaceTerminating"))
}
