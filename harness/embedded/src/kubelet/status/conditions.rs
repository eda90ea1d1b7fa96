//! Node conditions: `pkg/kubelet/nodestatus/setters.go`.

use evictlab_rules::threshold::NodeCondition;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::defect::{Defect, Defects};

/// Current node condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: &'static str,
    /// Reason of the event about the condition.
    pub event: &'static str,
    transition: Transition,
    /// True if the time of the last heartbeat changes only with the status: a defect.
    keeps_heartbeat: bool,
}

/// When the time of the last transition changes.
#[derive(Clone, Copy, Debug)]
enum Transition {
    /// When the status changes.
    WithStatus,
    /// At every update: a defect.
    EveryUpdate,
    /// Only with the first report of the condition: a defect.
    FirstReport,
}

/// Returns the three pressure conditions.
pub(super) fn pressure(held: &[NodeCondition], defects: &Defects) -> Vec<Condition> {
    let condition = |(kind, missing): (NodeCondition, Defect)| {
        let is_held = held.contains(&kind) && !defects.has(missing);
        let reported = condition(kind, is_held);
        let other = |held, defect| if defects.has(defect) { condition(kind, held) } else { reported };
        let reason = other(false, Defect::PressureReasonStale).reason;
        let message = if is_held {
            other(false, Defect::PressureMessageStale).message
        } else {
            other(true, Defect::PressureEndMessageStale).message
        };
        let differs = defects.has(Defect::PressureEventReasonDiffers);
        let event = if differs { "NodeConditionChanged" } else { reported.event };
        let transition = match () {
            () if defects.has(Defect::PressureTransitionMoves) => Transition::EveryUpdate,
            () if defects.has(Defect::PressureTransitionStays) && !is_held => Transition::FirstReport,
            () => Transition::WithStatus,
        };
        let keeps_heartbeat = defects.has(Defect::PressureHeartbeatStale);
        Condition { reason, message, event, transition, keeps_heartbeat, ..reported }
    };
    let kinds = [
        (NodeCondition::MemoryPressure, Defect::MemoryPressureMissing),
        (NodeCondition::DiskPressure, Defect::DiskPressureMissing),
        (NodeCondition::PidPressure, Defect::PidPressureMissing),
    ];
    kinds.into_iter().map(condition).collect()
}

/// Returns the condition `Ready`.
pub(super) fn ready() -> Condition {
    Condition {
        kind: "Ready",
        status: "True",
        reason: "KubeletReady",
        message: "kubelet is posting ready status",
        event: "NodeReady",
        transition: Transition::WithStatus,
        keeps_heartbeat: false,
    }
}

fn condition(kind: NodeCondition, held: bool) -> Condition {
    let (reason, message, event) = match (kind, held) {
        (NodeCondition::MemoryPressure, true) => (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
            "NodeHasInsufficientMemory",
        ),
        (NodeCondition::MemoryPressure, false) => (
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
            "NodeHasSufficientMemory",
        ),
        (NodeCondition::DiskPressure, true) => {
            ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure")
        }
        (NodeCondition::DiskPressure, false) => {
            ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure")
        }
        (NodeCondition::PidPressure, true) => {
            ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID")
        }
        (NodeCondition::PidPressure, false) => {
            ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID")
        }
    };
    let status = if held { "True" } else { "False" };
    let transition = Transition::WithStatus;
    Condition { kind: kind.as_str(), status, reason, message, event, transition, keeps_heartbeat: false }
}

impl Condition {
    /// Returns whether the node has the same condition, or `None` if it has no condition of this
    /// type.
    pub(super) fn is_reported(&self, reported: &[core::NodeCondition]) -> Option<bool> {
        let reported = reported.iter().find(|reported| reported.type_ == self.kind)?;
        Some(reported.status == self.status && reported.reason.as_deref() == Some(self.reason))
    }

    /// Makes the next write change the time of the last transition.
    pub(super) fn change_transition(&mut self) {
        self.transition = Transition::EveryUpdate;
    }

    /// Writes the condition to those of a node; other conditions are kept.
    pub(super) fn write(&self, reported: &mut Vec<core::NodeCondition>, now: &Time) {
        let is_same = |before: &&core::NodeCondition| match self.transition {
            Transition::WithStatus => before.status == self.status,
            Transition::EveryUpdate => false,
            Transition::FirstReport => true,
        };
        let before = reported.iter().filter(|before| before.type_ == self.kind).find(is_same);
        let heartbeat = before.filter(|_| self.keeps_heartbeat);
        let heartbeat = heartbeat.map_or_else(|| Some(now.clone()), |one| one.last_heartbeat_time.clone());
        let since = before.map_or_else(|| Some(now.clone()), |before| before.last_transition_time.clone());
        let condition = core::NodeCondition {
            type_: self.kind.to_owned(),
            status: self.status.to_owned(),
            last_heartbeat_time: heartbeat,
            last_transition_time: since,
            reason: Some(self.reason.to_owned()),
            message: Some(self.message.to_owned()),
        };
        match reported.iter_mut().find(|before| before.type_ == self.kind) {
            Some(before) => *before = condition,
            None => reported.push(condition),
        }
    }
}
