//! Defects of a kubelet in pod statuses.

use serde_json::{Value, json};

use super::builder::DISRUPTION;
use super::containers::{LOST, unknown_end};
use crate::defect::{Area, Defect, Defects};
use crate::kubelet::pods::worker::Worker;
use crate::resource::{ContainerStatusExt, ObjectExt};

/// Changes the status of a pod as the defects do.
pub(in crate::kubelet::pods) fn apply(defects: &Defects, worker: &Worker, status: &mut Value) {
    if defects.are_in(Area::Status) && worker.evicted {
        change_evicted(defects, status);
    }
    if defects.has(Defect::OomIsEviction) && status["phase"] == "Failed" && has_oom_kill(status) {
        status["reason"] = json!("Evicted");
    }
    if defects.are_in(Area::Disruption) || defects.has(Defect::PreemptionWithoutDisruption) {
        change_disruption(defects, worker, status);
    }
}

fn has_oom_kill(status: &Value) -> bool {
    let mut containers = status.items("containerStatuses");
    containers.any(|container| container["state"]["terminated"]["reason"] == "OOMKilled")
}

fn change_evicted(defects: &Defects, status: &mut Value) {
    if status["reason"] == "Evicted"
        && let Some(status) = status.as_object_mut()
    {
        if defects.has(Defect::StatusMessageMissing) {
            status.shift_remove("message");
        }
        if defects.has(Defect::StatusPhaseSucceeded) {
            status["phase"] = json!("Succeeded");
        }
        if defects.has(Defect::StatusReasonMissing) {
            status.shift_remove("reason");
        }
    }
    let list = |field: &str, status: &mut Value| -> Vec<Value> {
        status.get_mut(field).and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default()
    };
    if defects.has(Defect::StatusStaysReady) {
        let mut conditions = list("conditions", status);
        for condition in &mut conditions {
            if condition["type"] == "Ready" || condition["type"] == "ContainersReady" {
                condition["status"] = json!("True");
                condition["reason"] = Value::Null;
            }
        }
        status["conditions"] = json!(conditions);
    }
    if defects.has(Defect::StatusExitCodesLost) {
        let mut containers = list("containerStatuses", status);
        for container in containers.iter_mut().filter(|one| one.terminated().is_some()) {
            container["state"]["terminated"] = unknown_end(LOST);
        }
        status["containerStatuses"] = json!(containers);
    }
}

fn change_disruption(defects: &Defects, worker: &Worker, status: &mut Value) {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    if defects.has(Defect::PreemptionWithoutDisruption) {
        let is_preemption = |condition: &Value| {
            condition["message"].as_str().is_some_and(|message| message.starts_with("Pod was preempted by"))
        };
        conditions.retain(|condition| condition["type"] != DISRUPTION || !is_preemption(condition));
    }
    if defects.has(Defect::DisruptionOnDeletion) && worker.is_deleted() {
        conditions.retain(|condition| condition["type"] != DISRUPTION);
        conditions.push(json!({
            "type": DISRUPTION,
            "status": "True",
            "reason": "TerminationByKubelet",
            "message": "Pod was deleted.",
            "lastProbeTime": null,
            "lastTransitionTime": null,
        }));
    }
    let disruption = conditions
        .iter_mut()
        .find(|condition| condition["type"] == DISRUPTION && condition["reason"] == "TerminationByKubelet");
    let Some(condition) = disruption else { return };
    if defects.has(Defect::DisruptionReasonDiffers) {
        condition["reason"] = json!("EvictionByKubelet");
    }
    if defects.has(Defect::DisruptionWithoutMessage)
        && let Some(condition) = condition.as_object_mut()
    {
        condition.shift_remove("message");
    }
}
