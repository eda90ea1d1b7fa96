//! Defects of a kubelet in pod statuses.

use evictlab_rules::message::EVICTED_REASON;

use super::builder::{DISRUPTION, disruption};
use crate::defect::{Area, Defect, Defects};
use crate::kubelet::pods::worker::Worker;
use crate::resource::pod_status::{ConditionStatus, ContainerStatus, PodCondition};
use crate::resource::{Phase, PodStatus};

/// Changes the status of a pod as the defects do.
pub(in crate::kubelet::pods) fn apply(defects: &Defects, worker: &Worker, status: &mut PodStatus) {
    if defects.are_in(Area::Status) && worker.evicted {
        change_evicted(defects, worker, status);
    }
    if defects.has(Defect::StatusPendingAgain) && status.phase == Some(Phase::Running) {
        let containers = worker.manifest.spec.init_containers.iter();
        let statuses = containers.zip(&status.init_container_statuses);
        let mut sidecars = statuses.filter(|(one, _)| one.is_sidecar()).map(|(_, status)| status);
        if sidecars.any(|sidecar| sidecar.state.running.is_none()) {
            status.phase = Some(Phase::Pending);
        }
    }
    change_ends(defects, status);
    if defects.has(Defect::OomIsEviction) && status.phase == Some(Phase::Failed) && has_oom_kill(status) {
        status.reason = Some(EVICTED_REASON.to_owned());
    }
    let of_preemption = [Defect::PreemptionWithoutDisruption, Defect::PreemptionDisruptionFalse];
    if defects.are_in(Area::Disruption) || of_preemption.into_iter().any(|defect| defects.has(defect)) {
        change_disruption(defects, worker, &mut status.conditions);
    }
}

/// Changes the final states of containers.
fn change_ends(defects: &Defects, status: &mut PodStatus) {
    for end in status.container_statuses.iter_mut().filter_map(|one| one.state.terminated.as_mut()) {
        if defects.has(Defect::StatusEndIsStart) {
            end.finished_at.clone_from(&end.started_at);
        }
        if defects.has(Defect::StatusStartIsEnd) {
            end.started_at.clone_from(&end.finished_at);
        }
        if defects.has(Defect::StatusContainerIdLost) {
            end.container_id = None;
        }
    }
}

fn has_oom_kill(status: &PodStatus) -> bool {
    let mut ends = status.container_statuses.iter().filter_map(|one| one.state.terminated.as_ref());
    ends.any(|end| end.reason.as_deref() == Some("OOMKilled"))
}

/// Counts the end of containers that ran before as restarts.
fn count_ends(worker: &Worker, status: &mut PodStatus) {
    for one in status.container_statuses.iter_mut().filter(|one| one.is_terminated()) {
        match worker.known_status().container(&one.name) {
            Some(before) if before.is_terminated() => one.restart_count = before.restart_count,
            _ => one.restart_count += 1,
        }
    }
}

/// Replaces the final state of a container by that of a successful one.
fn lose_exit_code(status: &mut ContainerStatus) {
    if let Some(end) = &mut status.state.terminated {
        end.exit_code = 0;
        end.reason = Some("Completed".to_owned());
    }
}

fn change_evicted(defects: &Defects, worker: &Worker, status: &mut PodStatus) {
    if defects.has(Defect::StatusRestartCounted) {
        count_ends(worker, status);
    }
    if defects.has(Defect::StatusSidecarsExitLost) {
        let containers = worker.manifest.spec.init_containers.iter();
        let statuses = &mut status.init_container_statuses;
        let sidecars = containers.zip(statuses).filter(|(one, _)| one.is_sidecar());
        sidecars.for_each(|(_, one)| lose_exit_code(one));
    }
    if status.is_evicted() {
        if defects.has(Defect::StatusMessageMissing) {
            status.message = None;
        }
        if defects.has(Defect::StatusPhaseSucceeded) {
            status.phase = Some(Phase::Succeeded);
        }
        if defects.has(Defect::StatusReasonMissing) {
            status.reason = None;
        }
    }
    if defects.has(Defect::StatusStaysReady) {
        let is_readiness = |kind: &str| matches!(kind, "Ready" | "ContainersReady");
        for condition in status.conditions.iter_mut().filter(|condition| is_readiness(&condition.kind)) {
            condition.status = ConditionStatus::True;
            condition.reason = None;
        }
    }
    for (defect, kind) in [
        (Defect::StatusContainersReadyStays, "ContainersReady"),
        (Defect::StatusSandboxReadyStays, "PodReadyToStartContainers"),
    ] {
        let stays = |condition: &&mut PodCondition| defects.has(defect) && condition.kind == kind;
        for condition in status.conditions.iter_mut().filter(stays) {
            condition.status = ConditionStatus::True;
            condition.reason = None;
        }
    }
    if defects.has(Defect::StatusExitCodesLost) {
        status.container_statuses.iter_mut().for_each(lose_exit_code);
    }
}

fn change_disruption(defects: &Defects, worker: &Worker, conditions: &mut Vec<PodCondition>) {
    // The status of a rejected pod has no conditions.
    if conditions.is_empty() {
        return;
    }
    let is_preemption = |condition: &PodCondition| {
        let by_kubelet = |message: &String| message.starts_with("Pod was preempted by");
        condition.kind == DISRUPTION && condition.message.as_ref().is_some_and(by_kubelet)
    };
    if defects.has(Defect::PreemptionWithoutDisruption) {
        conditions.retain(|condition| !is_preemption(condition));
    }
    if defects.has(Defect::PreemptionDisruptionFalse) {
        let of_preemption = conditions.iter_mut().filter(|condition| is_preemption(condition));
        of_preemption.for_each(|condition| condition.status = ConditionStatus::False);
    }
    if defects.has(Defect::DisruptionOnDeletion) && worker.is_deleted() {
        conditions.retain(|condition| condition.kind != DISRUPTION);
        conditions.push(disruption("Pod was deleted."));
    }
    let by_kubelet = Some("TerminationByKubelet");
    let disruption = conditions
        .iter_mut()
        .find(|condition| condition.kind == DISRUPTION && condition.reason.as_deref() == by_kubelet);
    let Some(condition) = disruption else { return };
    if defects.has(Defect::DisruptionReasonDiffers) {
        condition.reason = Some("EvictionByKubelet".to_owned());
    }
    if defects.has(Defect::DisruptionWithoutMessage) {
        condition.message = None;
    }
}
