//! Pod statuses: computed from the containers, cached by the kubelet, written to the API.

use std::time::Duration;

use evictlab_rules::KubeletVersion;
use k8s_openapi::api::core::v1::HostIP;
use k8s_openapi::apimachinery::pkg::apis::meta;

use crate::context::SimContext;
use crate::defect::{Defect, Defects};
use crate::kubelet::pods::mirror;
use crate::kubelet::pods::runtime::RuntimePod;
use crate::kubelet::pods::spec::{Group, Manifest};
use crate::kubelet::pods::worker::{Reason, Worker};
use crate::resource::pod_status::{ContainerState, ContainerStatus, PodCondition, TerminatedState};
use crate::resource::{Kind, ObjectExt, Phase, PodStatus};
use crate::sim::{Epoch, SimTime};

/// Conditions that only the kubelet sets; `DisruptionTarget` is shared with other components.
const OWN: [&str; 7] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "PodResizePending",
    "AllContainersRestarting",
];
pub(super) const DISRUPTION: &str = "DisruptionTarget";

/// Input of a pod status.
pub(in crate::kubelet::pods) struct StatusBuilder<'a> {
    pub worker: &'a Worker,
    pub runtime: Option<&'a RuntimePod>,
    pub version: &'a KubeletVersion,
    pub defects: &'a Defects,
    pub host: &'a str,
    pub now: SimTime,
    pub epoch: Epoch,
}

impl StatusBuilder<'_> {
    pub(super) fn manifest(&self) -> &Manifest {
        &self.worker.manifest
    }

    /// Computes the status (`generateAPIPodStatus`). `ended` means that no container runs or will
    /// run.
    pub(crate) fn status(&self, ended: bool) -> PodStatus {
        let old = self.worker.known_status();
        let api = &self.worker.reported;
        let init = self.containers(Group::Init, &old.init_container_statuses);
        let mut regular = self.containers(Group::Regular, &old.container_statuses);
        let mut ephemeral = self.containers(Group::Ephemeral, &old.ephemeral_container_statuses);

        let mut phase = self.phase(&init, &regular, ended);
        if !phase.is_terminal() {
            // A terminal phase does not change.
            phase =
                [old.phase, api.phase].into_iter().flatten().find(|was| was.is_terminal()).unwrap_or(phase);
        }
        let (mut reason, mut message) = (None, None);
        if Some(phase) == old.phase {
            reason = old.reason.clone().or_else(|| api.reason.clone());
            message = old.message.clone().or_else(|| api.message.clone());
        }
        // The deadline replaces every other reason, such as that of an eviction (`ShouldEvict`).
        if self.exceeds_deadline() {
            let exceeded = Reason::deadline_exceeded(self.defects);
            phase = Phase::Failed;
            (reason, message) = (Some(exceeded.reason.into_owned()), Some(exceeded.message));
        }
        let phase = api.phase.filter(|api_phase| api_phase.is_terminal()).unwrap_or(phase);
        let conditions = self.conditions(old, &init, &regular, phase);
        for list in [&mut regular, &mut ephemeral] {
            list.sort_by(|one, other| one.name.cmp(&other.name));
        }
        let mut status = PodStatus {
            phase: Some(phase),
            observed_generation: self.worker.generation(self.version),
            conditions,
            message,
            reason,
            init_container_statuses: init,
            container_statuses: regular,
            ephemeral_container_statuses: ephemeral,
            qos_class: Some(self.manifest().pod.qos_class()),
            ..PodStatus::default()
        };
        self.set_addresses(old, &mut status);
        if self.version.at_least(36) {
            self.set_pod_resources(&mut status);
        }
        status
    }

    /// Returns whether the pod has been active for `activeDeadlineSeconds` (`pastActiveDeadline` of
    /// `pkg/kubelet/active_deadline.go`).
    pub(crate) fn exceeds_deadline(&self) -> bool {
        let deadline = self.manifest().spec.active_deadline_seconds;
        let is_past = |seconds| self.active_time() >= Duration::from_secs(seconds);
        deadline.is_some_and(is_past) && !self.defects.has(Defect::ActiveDeadlineIgnored)
    }

    /// Returns the time since the start of the pod.
    pub(crate) fn active_time(&self) -> Duration {
        let start = self.worker.known_status().start_time.as_ref();
        let active = start.map(|start| self.epoch.at(self.now).duration_since(start.0));
        active.and_then(|active| active.try_into().ok()).unwrap_or_default()
    }

    /// Sets the addresses of host and pod.
    fn set_addresses(&self, old: &PodStatus, status: &mut PodStatus) {
        status.host_ip = Some(self.host.to_owned());
        if self.version.at_least(29) {
            // `PodHostIPs`, on by default since 1.29.
            status.host_ips = Some(vec![HostIP { ip: self.host.to_owned() }]);
        }
        if let Some(sandbox) = self.runtime.and_then(|runtime| runtime.sandbox.as_ref()) {
            status.set_pod_ip(&sandbox.ip);
        } else if old.pod_ip.is_some() {
            status.pod_ip = old.pod_ip.clone();
            status.pod_ips = old.pod_ips.clone();
        } else if self.manifest().spec.host_network {
            status.set_pod_ip(self.host);
        }
    }

    /// Copies the times of unchanged conditions from the cached status. Returns whether the status
    /// differs from the cached one.
    pub(crate) fn keep(&self, status: &mut PodStatus) -> bool {
        let old = self.worker.known_status();
        let now = self.epoch.meta_time(self.now);
        for condition in &mut status.conditions {
            let before = old.condition(&condition.kind).filter(|before| before.status == condition.status);
            condition.last_transition_time =
                before.map_or_else(|| Some(now.clone()), |before| before.last_transition_time.clone());
        }
        status.start_time = old.start_time.clone().or(Some(now));
        self.worker.status.as_ref() != Some(status)
    }

    /// Completes the status of a pod whose containers are gone (`TerminatePod`): containers without
    /// a known end have failed.
    pub(crate) fn finish(&self, defects: &Defects) -> PodStatus {
        let mut status = self.worker.known_status().clone();
        if self.had_initialized() {
            let stays = defects.has(Defect::StatusWaitingStays);
            let ends = |container: &&mut ContainerStatus| !(stays && container.is_waiting());
            status.container_statuses.iter_mut().filter(ends).for_each(end_unless_terminated);
        }
        let init = &mut status.init_container_statuses;
        let begun = if defects.has(Defect::StatusInitWaitingLost) {
            init.len()
        } else {
            init.iter().rposition(has_begun).map_or(1, |last| last + 1)
        };
        init.iter_mut().take(begun).for_each(end_unless_terminated);
        if !status.is_terminal() {
            status.phase = Some(Phase::Failed);
        }
        status
    }

    /// Returns whether the regular containers may have run, according to the API's status
    /// (`hasPodInitialized`).
    fn had_initialized(&self) -> bool {
        let spec = &self.manifest().spec;
        let current = &self.worker.reported;
        let Some(last) = spec.init_containers.last() else { return true };
        if current.container_statuses.iter().any(has_begun) {
            return true;
        }
        current.init_container_statuses.last().is_some_and(|status| {
            if last.is_sidecar() {
                status.is_running() && status.started == Some(true)
            } else {
                let before = status.last_terminated().map(|end| end.exit_code);
                status.exit_code() == Some(0) || before == Some(0)
            }
        })
    }
}

/// Sets the unknown end of a container whose end is not known.
fn end_unless_terminated(container: &mut ContainerStatus) {
    if !container.is_terminated() {
        container.state = ContainerState::terminated(TerminatedState::unknown(TerminatedState::LOST));
    }
}

/// Returns whether a container runs, has ended, or ran before.
fn has_begun(status: &ContainerStatus) -> bool {
    !status.is_waiting() || status.last_terminated().is_some()
}

/// Sets the reason why the kubelet ends a pod. `generation` is the observed generation to report.
pub(in crate::kubelet::pods) fn end(status: &mut PodStatus, reason: &Reason, generation: Option<i64>) {
    status.phase = Some(Phase::Failed);
    status.reason = Some(reason.reason.to_string());
    status.message = Some(reason.message.clone());
    let Some(message) = &reason.disruption else { return };
    disruption(message).observing(generation).put(&mut status.conditions);
}

/// Creates the condition `DisruptionTarget` of a pod that the kubelet ends.
pub(super) fn disruption(message: &str) -> PodCondition {
    PodCondition::disruption("TerminationByKubelet", message)
}

/// The part of a terminal status that is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinalReport {
    /// Neither the phase with its reason nor `DisruptionTarget`.
    Withheld,
    /// Only `DisruptionTarget`.
    DisruptionOnly,
    /// Both.
    Complete,
}

/// Writes a status to the API (`mergePodStatus` and the patch). A terminal phase is held back while
/// containers may run, and `DisruptionTarget` with it, except with defects. Returns whether the
/// object exists.
pub(in crate::kubelet::pods) fn report(worker: &Worker, defects: &Defects, ctx: &mut SimContext) -> bool {
    let Some(status) = &worker.status else { return true };
    let Manifest { namespace, name, uid, .. } = &worker.manifest;
    let Some(object) = ctx.store.get(Kind::Pod, namespace, name) else { return false };
    if object.uid() != uid && mirror::hash_of(object) != Some(uid) {
        return false;
    }
    let ends_early = worker.evicted && defects.has(Defect::StatusTerminalEarly);
    let final_report = if !worker.could_run() || ends_early {
        FinalReport::Complete
    } else if defects.has(Defect::DisruptionEarly) {
        FinalReport::DisruptionOnly
    } else {
        FinalReport::Withheld
    };
    let now = (!defects.has(Defect::DisruptionTimeOfBegin)).then(|| ctx.epoch().meta_time(ctx.now));
    let mut merged = merge(PodStatus::of(object), status, final_report, now);
    if worker.evicted && defects.has(Defect::StatusReasonEarly) {
        (merged.reason, merged.message) = (status.reason.clone(), status.message.clone());
    }
    ctx.store.update(Kind::Pod, namespace, name, |object| object.write("status", merged));
    true
}

/// Merges a status into that of the API. `now` is the time of `DisruptionTarget` if the pod has
/// ended; without it, the condition keeps its own.
fn merge(
    current: PodStatus,
    new: &PodStatus,
    final_report: FinalReport,
    now: Option<meta::v1::Time>,
) -> PodStatus {
    let ends = !current.is_terminal() && new.is_terminal();
    let mut merged = new.clone();
    let mut conditions = current.conditions;
    conditions.retain(|condition| !is_own(condition));
    for mut condition in std::mem::take(&mut merged.conditions) {
        if is_own(&condition) {
            conditions.push(condition);
        } else if condition.kind == DISRUPTION && ends && final_report != FinalReport::Withheld {
            let before = conditions.iter().find(|before| before.kind == DISRUPTION);
            if now.is_some() && before.is_none_or(|before| before.status != condition.status) {
                condition.last_transition_time.clone_from(&now);
            }
            condition.put(&mut conditions);
        }
    }
    merged.conditions = conditions;
    if ends && final_report != FinalReport::Complete {
        (merged.phase, merged.reason, merged.message) = (current.phase, current.reason, current.message);
    }
    if current.nominated_node_name.is_some() {
        merged.nominated_node_name = current.nominated_node_name;
    }
    merged
}

/// Returns whether only the kubelet sets a condition.
pub(super) fn is_own(condition: &PodCondition) -> bool {
    OWN.contains(&condition.kind.as_str())
}
