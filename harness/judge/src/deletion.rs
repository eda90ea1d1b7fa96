//! Pods that someone other than the case deleted.

use evictlab_case::{
    Action, ApiRequest, Case, NodeChange, ObjectKind, PodPlacement, Step, Taint, TaintEffect,
};
use k8s_openapi::api::core::v1::Toleration;
use serde_json::Value;

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::verdict::Inconclusive;

/// Finds a pod that was deleted, in a case of which no step can be the reason.
pub(crate) fn deleted_externally(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Inconclusive> {
    let is_external = |pod: &&PodEvidence<'_>| {
        pod.gone && !pod.was_evicted() && !case.steps.iter().any(|step| can_delete(step, case, pod))
    };
    let pod = evidence.pods.iter().find(is_external)?;
    Some(Inconclusive::evidence_lost(format!(
        "{} was deleted externally before the end of the case",
        pod.name
    )))
}

/// Returns whether the API server or a controller may delete the pod because of a step.
fn can_delete(step: &Step, case: &Case, pod: &PodEvidence<'_>) -> bool {
    let Some(action) = &step.action else { return false };
    match action {
        Action::Api(ApiRequest::Delete(_) | ApiRequest::Evict(_) | ApiRequest::Patch(_)) => {
            action.object().is_some_and(|object| {
                if object.kind == ObjectKind::Pod {
                    !is_patch(action) && object.name.as_str() == pod.name
                } else {
                    is_owned_by(pod, object.name.as_str())
                }
            })
        }
        Action::Api(ApiRequest::Create(object)) => {
            let field =
                |path: &[&str]| path.iter().try_fold(object.get("spec")?, |value, key| value.get(key));
            let has_priority =
                field(&["priorityClassName"]).or_else(|| field(&["template", "spec", "priorityClassName"]));
            let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
            // The scheduler preempts pods, and a controller deletes adopted ones that are too many.
            case.placed == PodPlacement::Scheduled && has_priority.is_some()
                || name.and_then(Value::as_str).is_some_and(|name| is_owned_by(pod, name))
        }
        // Without the kubelet, the node lifecycle controller taints the node with NoExecute.
        Action::Node(NodeChange::Drain | NodeChange::Pause) => true,
        Action::Node(NodeChange::Taint(taint)) => {
            taint.effect == TaintEffect::NoExecute && !tolerates(pod, taint)
        }
        Action::Api(ApiRequest::Resize(_)) | Action::ReadLogs(_) | Action::Exec(_) => false,
        Action::Node(NodeChange::DeleteStaticPod(name)) => name.as_str() == pod.name,
        Action::Node(
            NodeChange::Untaint(_)
            | NodeChange::Uncordon
            | NodeChange::Resume
            | NodeChange::Configure(_)
            | NodeChange::RestartKubelet
            | NodeChange::LoadImage(_)
            | NodeChange::CreateStaticPod(_),
        ) => false,
    }
}

fn is_patch(action: &Action) -> bool {
    matches!(action, Action::Api(ApiRequest::Patch(_)))
}

/// Returns whether an object owns the pod, itself or by an object that a controller named after it,
/// such as the ReplicaSet of a Deployment.
fn is_owned_by(pod: &PodEvidence<'_>, name: &str) -> bool {
    let mut owners = pod.recorded.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        owner.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// Returns whether the pod tolerates the taint, with effect `NoExecute`, without a limit of time.
fn tolerates(pod: &PodEvidence<'_>, taint: &Taint) -> bool {
    let has_key = |toleration: &Toleration| match &toleration.key {
        Some(key) if !key.is_empty() => *key == taint.key,
        _ => toleration.operator.as_deref() == Some("Exists"),
    };
    let has_value = |toleration: &Toleration| {
        let values = [&toleration.value, &taint.value].map(|value| value.as_deref().unwrap_or_default());
        toleration.operator.as_deref() == Some("Exists") || values[0] == values[1]
    };
    let has_effect =
        |toleration: &Toleration| matches!(toleration.effect.as_deref(), None | Some("" | "NoExecute"));
    let spec = pod.recorded.spec.iter();
    spec.flat_map(|spec| spec.tolerations.iter().flatten()).any(|toleration| {
        has_key(toleration)
            && has_value(toleration)
            && has_effect(toleration)
            && toleration.toleration_seconds.is_none()
    })
}
