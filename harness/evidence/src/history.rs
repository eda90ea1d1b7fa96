//! The histories of a pod and a node: one entry for each change of state.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeCondition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::objects::{ContainerStatusExt, RecordedNode, RecordedPod};
use crate::recorded::Recorded;

/// State of a pod after a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PodHistoryEntry {
    /// Time of the change, in seconds since the first pod was created.
    pub t: f64,
    /// `status.phase`.
    pub phase: Option<String>,
    /// `status.reason`.
    pub reason: Option<String>,
    /// True if the pod has a deletion timestamp.
    pub deleting: bool,
    /// True if the pod was deleted.
    pub gone: bool,
    /// The conditions by type.
    pub conditions: BTreeMap<String, ConditionEntry>,
    /// The containers by name.
    pub containers: BTreeMap<String, ContainerEntry>,
}

/// State of a node after a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeHistoryEntry {
    /// Time of the change, in seconds since the first pod was created.
    pub t: f64,
    /// The conditions by type.
    pub conditions: BTreeMap<String, ConditionEntry>,
    /// The taints as `key:effect`, sorted.
    pub taints: Vec<String>,
    /// True if the node is cordoned.
    pub unschedulable: bool,
}

/// An image in a node's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeImage {
    /// Names with tags and with digests.
    pub names: Vec<String>,
    /// Size in bytes, as the runtime reports it: usually of the compressed layers.
    pub size_bytes: i64,
}

impl NodeImage {
    /// Returns the images that a node lists.
    pub(crate) fn listed_by(node: &RecordedNode) -> impl Iterator<Item = Self> {
        let listed = node.status.iter().flat_map(|status| status.images.iter().flatten());
        listed.map(|image| Self {
            names: image.names.clone().unwrap_or_default(),
            size_bytes: image.size_bytes.unwrap_or_default(),
        })
    }
}

/// A condition in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConditionEntry {
    /// `True`, `False` or `Unknown`.
    pub status: Option<String>,
    /// Reason.
    pub reason: Option<String>,
    /// Message.
    pub message: Option<String>,
}

/// A container in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerEntry {
    /// `waiting`, `running` or `terminated`.
    pub state: String,
    /// Reason of the state.
    pub reason: Option<String>,
    /// Exit code, if the container has terminated.
    pub exit_code: Option<i32>,
    /// Number of restarts.
    pub restarts: Option<i32>,
    /// True if the container is ready.
    pub ready: Option<bool>,
}

impl ConditionEntry {
    fn new(status: &str, reason: Option<&str>, message: Option<&str>) -> Self {
        Self {
            status: Some(status.to_owned()),
            reason: reason.map(str::to_owned),
            message: message.map(str::to_owned),
        }
    }
}

impl PodHistoryEntry {
    /// Returns the state of a pod at `t` seconds after the first pod was created.
    pub(crate) fn new(t: f64, pod: &RecordedPod, gone: bool) -> Self {
        let containers = pod.container_statuses().filter_map(|status| {
            let (state, reason) = status.state_and_reason()?;
            let entry = ContainerEntry {
                state: state.to_owned(),
                reason: reason.map(str::to_owned),
                exit_code: status.terminated().map(|terminated| terminated.exit_code),
                restarts: Some(status.restart_count),
                ready: Some(status.ready),
            };
            Some((status.name.clone(), entry))
        });
        let conditions = pod.conditions().map(|condition| {
            let (reason, message) = (condition.reason.as_deref(), condition.message.as_deref());
            let entry = ConditionEntry::new(&condition.status, reason, message);
            (condition.type_.clone(), entry)
        });
        Self {
            t,
            phase: pod.phase().map(str::to_owned),
            reason: pod.reason().map(str::to_owned),
            deleting: pod.is_deleting(),
            gone,
            conditions: conditions.collect(),
            containers: containers.collect(),
        }
    }
}

impl NodeHistoryEntry {
    /// Returns the state of a node at `t` seconds after the first pod was created.
    pub(crate) fn new(t: f64, node: &RecordedNode) -> Self {
        let spec = node.spec.as_ref();
        let taints = spec.into_iter().flat_map(|spec| &spec.taints).flatten();
        let mut taints: Vec<String> = taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
        taints.sort();
        let conditions = node.status.iter().flat_map(|status| &status.conditions).flatten();
        let entry = |condition: &NodeCondition| {
            let (reason, message) = (condition.reason.as_deref(), condition.message.as_deref());
            let entry = ConditionEntry::new(&condition.status, reason, message);
            (condition.type_.clone(), entry)
        };
        Self {
            t,
            conditions: conditions.map(entry).collect(),
            taints,
            unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
        }
    }
}

/// An entry of a history.
pub(crate) trait HistoryEntry: Serialize {
    /// Returns whether two entries differ in their times only.
    fn is_same_state(&self, other: &Self) -> bool;
}

impl HistoryEntry for PodHistoryEntry {
    fn is_same_state(&self, other: &Self) -> bool {
        Self { t: other.t, ..self.clone() } == *other
    }
}

impl HistoryEntry for NodeHistoryEntry {
    fn is_same_state(&self, other: &Self) -> bool {
        Self { t: other.t, ..self.clone() } == *other
    }
}

/// Maximum number of entries of a history: a container that restarts in a loop has many.
pub(crate) const MAX_HISTORY: usize = 1000;

/// Appends an entry, unless only its time differs from the last one. Returns false if the history
/// is full.
pub(crate) fn push_change<T: HistoryEntry>(history: &mut Vec<Recorded<T>>, entry: T) -> bool {
    let is_same = |last: &Recorded<T>| last.is_same_state(&entry);
    if history.last().is_some_and(is_same) {
        return true;
    }
    let has_room = history.len() < MAX_HISTORY;
    if has_room {
        history.extend(Recorded::of(entry));
    }
    has_room
}

/// Returns the time in seconds of the first entry in which a container has left the state
/// `waiting`.
pub(crate) fn first_container_start(history: &[Recorded<PodHistoryEntry>]) -> Option<f64> {
    let has_started = |entry: &&Recorded<PodHistoryEntry>| {
        entry.containers.values().any(|container| container.state != "waiting")
    };
    history.iter().find(has_started).map(|entry| entry.t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repeated_states_are_recorded_once() {
        let pod = |phase: &str| {
            Recorded::decode(
                json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "a", "restartCount": 0, "state": {"running": {}}}]}}),
            )
            .unwrap()
        };
        let mut history = vec![];
        for (t, phase) in [(0.0, "Pending"), (1.0, "Running"), (2.0, "Running"), (3.0, "Failed")] {
            push_change(&mut history, PodHistoryEntry::new(t, &pod(phase), false));
        }
        let recorded: Vec<_> =
            history.iter().map(|entry| (entry.t, entry.phase.as_deref().unwrap())).collect();
        assert_eq!(recorded, [(0.0, "Pending"), (1.0, "Running"), (3.0, "Failed")]);
        assert_eq!(
            *history[0].json(),
            json!({
                "t": 0.0,
                "phase": "Pending",
                "reason": null,
                "deleting": false,
                "gone": false,
                "conditions": {"Ready": {"status": "True", "reason": null, "message": null}},
                "containers": {"a": {"state": "running", "reason": null, "exitCode": null, "restarts": 0, "ready": false}},
            })
        );
    }
}
