//! Views of recorded Kubernetes objects: named accessors over JSON that is kept exactly as it came.
//!
//! Recordings must be written back byte for byte and expressions see every field of an object, so
//! the evidence keeps the objects as JSON. A view reads the fields that the harness depends on; a
//! field that is missing or has another type reads as `None`.

use evictlab_rules::pod::Pod;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

pub use evictlab_case::expression::CONTAINER_STATUS_FIELDS;

/// Annotation of a mirror pod, the API's copy of a static pod.
const MIRROR_POD_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// View of a pod.
#[derive(Clone, Copy, Debug)]
pub struct PodView<'a>(&'a Value);

impl<'a> PodView<'a> {
    /// Views a pod as the API returned it.
    pub fn new(pod: &'a Value) -> Self {
        Self(pod)
    }

    /// Decodes the fields that the eviction rules depend on; empty if the pod cannot be decoded.
    pub fn decode(self) -> Pod {
        Pod::deserialize(self.0).unwrap_or_default()
    }

    /// Returns `metadata.name`, or the empty string.
    pub fn name(self) -> &'a str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Returns `metadata.uid`.
    pub fn uid(self) -> Option<&'a str> {
        self.0["metadata"]["uid"].as_str()
    }

    /// Returns the name that a case uses for the pod: `metadata.name`, for a mirror pod without the
    /// node's name, which the kubelet appends to the name in the manifest.
    pub fn case_name(self) -> &'a str {
        let name = self.name();
        if self.0["metadata"]["annotations"][MIRROR_POD_ANNOTATION].is_null() {
            return name;
        }
        let node = self.0["spec"]["nodeName"].as_str().unwrap_or_default();
        name.strip_suffix(node).and_then(|name| name.strip_suffix('-')).unwrap_or(name)
    }

    /// Reports whether the pod has a deletion timestamp.
    pub fn is_deleting(self) -> bool {
        !self.0["metadata"]["deletionTimestamp"].is_null()
    }

    /// Returns the time at which the deletion was requested: the deletion timestamp, which is the end
    /// of the grace period, less the grace period.
    pub fn deletion_requested_at(self) -> Option<Timestamp> {
        let metadata = &self.0["metadata"];
        let end: Timestamp = metadata["deletionTimestamp"].as_str()?.parse().ok()?;
        let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        end.checked_sub(SignedDuration::from_secs(grace)).ok()
    }

    /// Returns the number of regular containers in the spec.
    pub fn regular_container_count(self) -> usize {
        self.0["spec"]["containers"].as_array().map_or(0, Vec::len)
    }

    /// Returns `status.phase`.
    pub fn phase(self) -> Option<&'a str> {
        self.0["status"]["phase"].as_str()
    }

    /// Returns `status.reason`.
    pub fn reason(self) -> Option<&'a str> {
        self.0["status"]["reason"].as_str()
    }

    /// Returns `status.message`.
    pub fn message(self) -> Option<&'a str> {
        self.0["status"]["message"].as_str()
    }

    /// Reports whether `status.reason` is `Evicted`.
    pub fn is_evicted(self) -> bool {
        self.reason() == Some("Evicted")
    }

    /// Returns the statuses of all containers: init containers, regular ones, ephemeral ones.
    pub fn container_statuses(self) -> impl Iterator<Item = ContainerStatusView<'a>> {
        container_statuses(&self.0["status"]).map(ContainerStatusView)
    }

    /// Returns the statuses of the regular containers.
    pub fn regular_container_statuses(self) -> impl Iterator<Item = ContainerStatusView<'a>> {
        items(&self.0["status"]["containerStatuses"]).map(ContainerStatusView)
    }

    /// Returns the statuses of init containers and regular containers.
    pub fn startup_container_statuses(self) -> impl Iterator<Item = ContainerStatusView<'a>> {
        let lists = ["initContainerStatuses", "containerStatuses"].into_iter();
        lists.flat_map(move |list| items(&self.0["status"][list])).map(ContainerStatusView)
    }

    /// Returns the conditions.
    pub fn conditions(self) -> impl Iterator<Item = ConditionView<'a>> {
        items(&self.0["status"]["conditions"]).map(ConditionView)
    }

    /// Returns the `DisruptionTarget` condition set by the kubelet (KEP-3329).
    pub fn kubelet_termination_condition(self) -> Option<ConditionView<'a>> {
        kubelet_termination_condition(&self.0["status"]).map(ConditionView)
    }
}

/// View of a container's status.
#[derive(Clone, Copy, Debug)]
pub struct ContainerStatusView<'a>(&'a Value);

impl<'a> ContainerStatusView<'a> {
    /// Returns the container's name, or the empty string.
    pub fn name(self) -> &'a str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// Returns the name of the state: `waiting`, `running` or `terminated`.
    pub fn state(self) -> Option<&'a str> {
        self.0["state"].as_object()?.keys().next().map(String::as_str)
    }

    /// Returns the number of restarts.
    pub fn restart_count(self) -> Option<u64> {
        self.0["restartCount"].as_u64()
    }

    /// Reports whether the container runs.
    pub fn is_running(self) -> bool {
        !self.0["state"]["running"].is_null()
    }

    /// Reports whether the container runs or ran until its present termination.
    ///
    /// A `terminated` state without a start time is not evidence of a start: when a pod ends, the
    /// kubelet's status manager sets it for every container, started or not (`TerminatePod`).
    pub fn has_run(self) -> bool {
        self.is_running() || !self.0["state"]["terminated"]["startedAt"].is_null()
    }

    /// Returns the `waiting` state.
    pub fn waiting(self) -> Option<WaitingView<'a>> {
        present(&self.0["state"]["waiting"]).map(WaitingView)
    }

    /// Returns the `terminated` state.
    pub fn terminated(self) -> Option<TerminatedView<'a>> {
        present(&self.0["state"]["terminated"]).map(TerminatedView)
    }

    /// Returns the termination before the present state.
    pub fn last_terminated(self) -> Option<TerminatedView<'a>> {
        present(&self.0["lastState"]["terminated"]).map(TerminatedView)
    }
}

/// View of the state of a waiting container.
#[derive(Clone, Copy, Debug)]
pub struct WaitingView<'a>(&'a Value);

impl<'a> WaitingView<'a> {
    /// Returns the reason, such as `ImagePullBackOff`.
    pub fn reason(self) -> Option<&'a str> {
        self.0["reason"].as_str()
    }

    /// Returns the message.
    pub fn message(self) -> Option<&'a str> {
        self.0["message"].as_str()
    }
}

/// View of the state of a terminated container.
#[derive(Clone, Copy, Debug)]
pub struct TerminatedView<'a>(&'a Value);

impl<'a> TerminatedView<'a> {
    /// Returns the reason, such as `OOMKilled`, or the empty string.
    pub fn reason(self) -> &'a str {
        self.0["reason"].as_str().unwrap_or_default()
    }

    /// Returns the exit code.
    pub fn exit_code(self) -> Option<i64> {
        self.0["exitCode"].as_i64()
    }

    /// Returns the end, in whole seconds.
    pub fn finished_at(self) -> Option<Timestamp> {
        timestamp(&self.0["finishedAt"])
    }
}

/// View of a condition.
#[derive(Clone, Copy, Debug)]
pub struct ConditionView<'a>(&'a Value);

impl<'a> ConditionView<'a> {
    /// Returns the type, such as `Ready`.
    pub fn kind(self) -> Option<&'a str> {
        self.0["type"].as_str()
    }

    /// Returns the status: `True`, `False` or `Unknown`.
    pub fn status(self) -> Option<&'a str> {
        self.0["status"].as_str()
    }

    /// Returns the reason.
    pub fn reason(self) -> Option<&'a str> {
        self.0["reason"].as_str()
    }

    /// Returns the message.
    pub fn message(self) -> Option<&'a str> {
        self.0["message"].as_str()
    }

    /// Returns the time of the last transition, in whole seconds.
    pub fn last_transition_time(self) -> Option<Timestamp> {
        timestamp(&self.0["lastTransitionTime"])
    }
}

/// View of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a>(&'a Value);

impl<'a> EventView<'a> {
    /// Views an event as the API returned it.
    pub fn new(event: &'a Value) -> Self {
        Self(event)
    }

    /// Returns `metadata.uid`.
    pub fn uid(self) -> Option<&'a str> {
        self.0["metadata"]["uid"].as_str()
    }

    /// Returns the reason, or the empty string.
    pub fn reason(self) -> &'a str {
        self.0["reason"].as_str().unwrap_or_default()
    }

    /// Returns the message, or the empty string.
    pub fn message(self) -> &'a str {
        self.0["message"].as_str().unwrap_or_default()
    }

    /// Reports whether the type is `Warning`.
    pub fn is_warning(self) -> bool {
        self.0["type"] == "Warning"
    }

    /// Returns the name of the object that the event is about.
    pub fn object_name(self) -> Option<&'a str> {
        self.0["involvedObject"]["name"].as_str()
    }

    /// Returns the UID of the object that the event is about.
    pub fn object_uid(self) -> Option<&'a str> {
        self.0["involvedObject"]["uid"].as_str()
    }
}

/// Returns the statuses of all containers in a pod's `status`: init containers, regular ones,
/// ephemeral ones.
pub fn container_statuses(status: &Value) -> impl Iterator<Item = &Value> {
    CONTAINER_STATUS_FIELDS.into_iter().flat_map(|list| items(&status[list]))
}

/// Returns the condition in a pod's `status` that the kubelet sets when it terminates the pod for
/// lack of resources: `DisruptionTarget` with the reason `TerminationByKubelet` (KEP-3329).
pub fn kubelet_termination_condition(status: &Value) -> Option<&Value> {
    items(&status["conditions"]).find(|condition| {
        let view = ConditionView(condition);
        view.kind() == Some("DisruptionTarget") && view.reason() == Some("TerminationByKubelet")
    })
}

/// Returns the name that a case uses for a pod; see [`PodView::case_name`].
pub fn pod_name(pod: &Value) -> String {
    PodView::new(pod).case_name().to_owned()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn present(value: &Value) -> Option<&Value> {
    (!value.is_null()).then_some(value)
}

fn timestamp(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strips_the_node_name_from_mirror_pods_only() {
        let pod = |annotations: Value| json!({"metadata": {"name": "hog-node-1", "annotations": annotations}, "spec": {"nodeName": "node-1"}});
        assert_eq!(pod_name(&pod(json!({MIRROR_POD_ANNOTATION: "hash"}))), "hog");
        assert_eq!(pod_name(&pod(Value::Null)), "hog-node-1");
    }

    #[test]
    fn termination_without_a_start_time_is_not_a_run() {
        let has_run = |state: Value| ContainerStatusView(&json!({"state": state})).has_run();
        assert!(has_run(json!({"running": {}})));
        assert!(has_run(json!({"terminated": {"startedAt": "2026-11-21T00:44:46Z"}})));
        assert!(!has_run(json!({"terminated": {"startedAt": null, "exitCode": 137}})));
        assert!(!has_run(json!({"waiting": {"reason": "PodInitializing"}})));
    }

    #[test]
    fn missing_fields_read_as_none() {
        let pod = PodView::new(&Value::Null);
        assert_eq!((pod.name(), pod.uid(), pod.phase(), pod.is_deleting()), ("", None, None, false));
        assert_eq!(pod.container_statuses().count() + pod.conditions().count(), 0);
        assert!(!pod.is_evicted() && pod.kubelet_termination_condition().is_none());
    }
}
