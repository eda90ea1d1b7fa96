//! Conditions of pods and nodes (`podutil.UpdatePodCondition`).

use serde_json::{Value, json};

use super::ObjectExt;

/// Condition to set in a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    /// Type, such as `DisruptionTarget`.
    pub(crate) kind: &'a str,
    /// `True` or `False`.
    pub(crate) status: &'a str,
    /// Reason; omitted if empty.
    pub(crate) reason: &'a str,
    /// Message; omitted if empty.
    pub(crate) message: &'a str,
}

impl<'a> Condition<'a> {
    /// Creates a `DisruptionTarget` condition.
    pub(crate) fn disruption(reason: &'a str, message: &'a str) -> Self {
        Self { kind: "DisruptionTarget", status: "True", reason, message }
    }

    /// Sets the condition in a pod. `now`, such as `2026-01-01T00:00:00Z`, is the transition time
    /// if the status changes. `generation` is the observed generation, which scheduler and
    /// controllers report since 1.34 (`PodObservedGenerationTracking`, KEP-5067).
    pub(crate) fn set(self, pod: &mut Value, now: &str, generation: Option<i64>) {
        let mut condition = json!({
            "type": self.kind,
            "status": self.status,
            "lastProbeTime": null,
            "lastTransitionTime": now,
        });
        if !self.reason.is_empty() {
            condition["reason"] = json!(self.reason);
        }
        if !self.message.is_empty() {
            condition["message"] = json!(self.message);
        }
        if let Some(generation) = generation {
            condition["observedGeneration"] = json!(generation);
        }
        let status = &mut pod["status"];
        if let Some(old) = find(status, self.kind).filter(|old| old["status"] == self.status) {
            condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
        put(status, condition);
    }
}

/// Returns the condition of a type in a status.
pub(crate) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status.items("conditions").find(|condition| condition["type"] == kind)
}

/// Adds a condition to a status, or replaces the one of its type.
pub(crate) fn put(status: &mut Value, condition: Value) {
    match status.items_mut("conditions").find(|old| old["type"] == condition["type"]) {
        Some(old) => *old = condition,
        None => status.push("conditions", condition),
    }
}
