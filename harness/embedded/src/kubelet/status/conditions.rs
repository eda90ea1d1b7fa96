//! The node's conditions: `pkg/kubelet/nodestatus/setters.go`.

use evictlab_rules::threshold::NodeCondition;
use serde_json::{Value, json};

/// A condition as it is now.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: &'static str,
    /// The reason of the event that tells of it.
    pub event: &'static str,
}

/// The three of pressure.
pub(super) fn pressure(held: &[NodeCondition]) -> Vec<Condition> {
    let kinds = [NodeCondition::MemoryPressure, NodeCondition::DiskPressure, NodeCondition::PidPressure];
    kinds.into_iter().map(|kind| of(kind, held.contains(&kind))).collect()
}

/// That all is well.
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
    /// Whether the node's status says the same; none if it says nothing of it.
    pub(super) fn is_told(&self, node: &Value) -> Option<bool> {
        let all = node["status"]["conditions"].as_array()?;
        let told = all.iter().find(|told| told["type"] == self.kind)?;
        Some(told["status"] == self.status && told["reason"] == self.reason)
    }
}

/// Puts conditions into a status; others stay.
pub(super) fn write(status: &mut Value, conditions: &[Condition], now: &str) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(all) = status["conditions"].as_array_mut() else { return };
    for condition in conditions {
        let told = all.iter().position(|told| told["type"] == condition.kind);
        let since = told.map(|told| &all[told]).filter(|told| told["status"] == condition.status);
        let since = since.map_or_else(|| json!(now), |told| told["lastTransitionTime"].clone());
        let written = json!({
            "type": condition.kind,
            "status": condition.status,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since,
            "reason": condition.reason,
            "message": condition.message,
        });
        match told {
            Some(told) => all[told] = written,
            None => all.push(written),
        }
    }
}
