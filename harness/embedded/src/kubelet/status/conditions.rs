//! Node conditions: `pkg/kubelet/nodestatus/setters.go`.

use evictlab_rules::threshold::NodeCondition;
use serde_json::{Value, json};

use crate::defect::{Defect, Defects};
use crate::resource::ObjectExt;
use crate::resource::condition::{find, put};

/// Current node condition.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: &'static str,
    /// Reason of the event about the condition.
    pub event: &'static str,
}

/// Returns the three pressure conditions.
pub(super) fn pressure(held: &[NodeCondition], defects: &Defects) -> Vec<Condition> {
    let condition = |(kind, missing): (NodeCondition, Defect)| {
        let reported = of(kind, held.contains(&kind) && !defects.has(missing));
        match defects.has(Defect::PressureReasonStale) {
            true => Condition { reason: of(kind, false).reason, ..reported },
            false => reported,
        }
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
    }
}

fn of(kind: NodeCondition, held: bool) -> Condition {
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
    Condition { kind: kind.as_str(), status: if held { "True" } else { "False" }, reason, message, event }
}

impl Condition {
    /// Returns whether the node's status has the same condition, or `None` if it has no condition
    /// of this type.
    pub(super) fn is_reported(&self, node: &Value) -> Option<bool> {
        let reported = node.condition(self.kind)?;
        Some(reported["status"] == self.status && reported["reason"] == self.reason)
    }
}

/// Writes conditions to a status; other conditions are kept.
pub(super) fn write(status: &mut Value, conditions: &[Condition], now: &str) {
    for condition in conditions {
        let same = find(status, condition.kind).filter(|reported| reported["status"] == condition.status);
        let since = same.map_or_else(|| json!(now), |reported| reported["lastTransitionTime"].clone());
        let written = json!({
            "type": condition.kind,
            "status": condition.status,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since,
            "reason": condition.reason,
            "message": condition.message,
        });
        put(status, written);
    }
}
