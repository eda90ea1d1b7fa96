//! Accessors of recorded Kubernetes objects.

use evictlab_case::CASE_NAME_ANNOTATION;
use evictlab_rules::message::{EVICTED_REASON, is_rejection_message};
use evictlab_rules::pod;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Event, Node, Pod, PodCondition,
};
use serde_json::Value;

use crate::recorded::{DecodeError, Recorded, decode_as};

/// A pod as the API returned it.
pub type RecordedPod = Recorded<Pod>;

/// An event as the API returned it.
pub type RecordedEvent = Recorded<Event>;

/// A node as the API returned it.
pub type RecordedNode = Recorded<Node>;

impl Recorded<Pod> {
    /// Decodes the fields that the eviction rules depend on, with the allocated requests.
    ///
    /// # Errors
    /// One of these fields has another type than the rules expect, such as a quantity.
    pub fn as_ranked(&self) -> Result<pod::Pod, DecodeError> {
        Ok(decode_as::<pod::Pod>(self.json())?.with_allocated_resources())
    }

    /// Returns `metadata.name`, or the empty string.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns `metadata.uid`.
    pub fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }

    /// Returns the name that a case uses for the pod: `metadata.name`, for a mirror pod without the
    /// node's name, which the kubelet appends to the name in the manifest, for a pod with
    /// `generateName` without the suffix that the API server appends.
    pub fn case_name(&self) -> &str {
        let name = self.name();
        let annotations = self.metadata.annotations.as_ref();
        let generated = annotations.and_then(|annotations| annotations.get(CASE_NAME_ANNOTATION));
        if let Some(case_name) = generated {
            return case_name;
        }
        if !self.is_mirror_pod() {
            return name;
        }
        let node = self.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        name.strip_suffix(node).and_then(|name| name.strip_suffix('-')).unwrap_or(name)
    }

    /// Returns whether the pod is the API's copy of a static pod, whose UID the kubelet does not
    /// use.
    pub fn is_mirror_pod(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.contains_key(pod::CONFIG_MIRROR_ANNOTATION))
    }

    /// Returns whether the pod has a deletion timestamp.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the time at which the deletion was requested: the deletion timestamp, which is the
    /// end of the grace period, less the grace period.
    pub fn deletion_requested_at(&self) -> Option<Timestamp> {
        let end = self.metadata.deletion_timestamp.as_ref()?.0;
        let grace = self.metadata.deletion_grace_period_seconds.unwrap_or(0);
        end.checked_sub(SignedDuration::from_secs(grace)).ok()
    }

    /// Returns the names of the containers in the spec: init containers, regular ones, ephemeral
    /// ones.
    pub fn container_names(&self) -> impl Iterator<Item = &str> {
        let spec = self.spec.iter();
        spec.flat_map(|spec| {
            let init = spec.init_containers.iter().flatten().chain(&spec.containers);
            let ephemeral = spec.ephemeral_containers.iter().flatten();
            init.map(|container| container.name.as_str())
                .chain(ephemeral.map(|container| container.name.as_str()))
        })
    }

    /// Returns `status.phase`.
    pub fn phase(&self) -> Option<&str> {
        self.status.as_ref()?.phase.as_deref()
    }

    /// Returns `status.reason`.
    pub fn reason(&self) -> Option<&str> {
        self.status.as_ref()?.reason.as_deref()
    }

    /// Returns `status.message`.
    pub fn message(&self) -> Option<&str> {
        self.status.as_ref()?.message.as_deref()
    }

    /// Returns whether the kubelet evicted the pod: `status.reason` is `Evicted`, and the message
    /// is not that of a rejection at admission.
    pub fn is_evicted(&self) -> bool {
        self.reason() == Some(EVICTED_REASON) && !self.is_rejected()
    }

    /// Returns whether the kubelet rejected the pod at admission, for node pressure or for another
    /// reason.
    pub fn is_rejected(&self) -> bool {
        self.message().is_some_and(is_rejection_message)
    }

    /// Returns the statuses of all containers: init containers, regular ones, ephemeral ones.
    pub fn container_statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        let ephemeral = self.status.iter().flat_map(|status| &status.ephemeral_container_statuses);
        self.startup_container_statuses().chain(ephemeral.flatten())
    }

    /// Returns the statuses of init containers and regular containers.
    pub fn startup_container_statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        let init = self.status.iter().flat_map(|status| &status.init_container_statuses);
        let regular = self.status.iter().flat_map(|status| &status.container_statuses);
        init.chain(regular).flatten()
    }

    /// Returns whether every regular container runs, hence init containers are done.
    pub fn is_running(&self) -> bool {
        let count = self.spec.as_ref().map_or(0, |spec| spec.containers.len());
        let statuses = self.status.iter().flat_map(|status| &status.container_statuses).flatten();
        count > 0 && statuses.filter(|status| status.is_running()).count() == count
    }

    /// Returns the conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &PodCondition> {
        self.status.iter().flat_map(|status| &status.conditions).flatten()
    }

    /// Returns the `DisruptionTarget` condition that the kubelet sets when it terminates the pod
    /// for lack of resources (KEP-3329).
    pub fn kubelet_termination_condition(&self) -> Option<&PodCondition> {
        self.conditions().find(|condition| {
            condition.type_ == "DisruptionTarget"
                && condition.reason.as_deref() == Some("TerminationByKubelet")
        })
    }
}

/// Accessors of a container's status.
pub trait ContainerStatusExt {
    /// Returns the name of the state, `waiting`, `running` or `terminated`, and its reason.
    fn state_and_reason(&self) -> Option<(&'static str, Option<&str>)>;

    /// Returns whether the container runs.
    fn is_running(&self) -> bool;

    /// Returns the `waiting` state.
    fn waiting(&self) -> Option<&ContainerStateWaiting>;

    /// Returns the `terminated` state.
    fn terminated(&self) -> Option<&ContainerStateTerminated>;

    /// Returns the termination before the present state.
    fn last_terminated(&self) -> Option<&ContainerStateTerminated>;

    /// Returns the known times at which the container started, the latest one first: of its present
    /// run, and of the run before the last restart.
    fn starts(&self) -> impl Iterator<Item = Timestamp>;

    /// Returns whether the container runs or ever ran. A container that waits for its restart has
    /// run.
    ///
    /// A `terminated` state without a start time is not evidence of a start: when a pod ends, the
    /// kubelet's status manager sets it for every container, started or not (`TerminatePod`).
    fn has_run(&self) -> bool {
        self.is_running() || self.starts().next().is_some()
    }
}

impl ContainerStatusExt for ContainerStatus {
    fn state_and_reason(&self) -> Option<(&'static str, Option<&str>)> {
        if let Some(waiting) = self.waiting() {
            return Some(("waiting", waiting.reason.as_deref()));
        }
        if let Some(terminated) = self.terminated() {
            return Some(("terminated", terminated.reason.as_deref()));
        }
        self.is_running().then_some(("running", None))
    }

    fn is_running(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.running.is_some())
    }

    fn waiting(&self) -> Option<&ContainerStateWaiting> {
        self.state.as_ref()?.waiting.as_ref()
    }

    fn terminated(&self) -> Option<&ContainerStateTerminated> {
        self.state.as_ref()?.terminated.as_ref()
    }

    fn last_terminated(&self) -> Option<&ContainerStateTerminated> {
        self.last_state.as_ref()?.terminated.as_ref()
    }

    fn starts(&self) -> impl Iterator<Item = Timestamp> {
        let running = self.state.as_ref().and_then(|state| state.running.as_ref()?.started_at.as_ref());
        let ended = [self.terminated(), self.last_terminated()].into_iter().flatten();
        running.into_iter().chain(ended.filter_map(|ended| ended.started_at.as_ref())).map(|start| start.0)
    }
}

impl Recorded<Event> {
    /// Returns `metadata.uid`.
    pub fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }

    /// Returns the reason, or the empty string.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// Returns the message, or the empty string.
    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// Returns whether the event is that of an eviction: its reason is `Evicted`, and its message
    /// is not that of a rejection at admission.
    pub fn is_eviction(&self) -> bool {
        self.reason() == EVICTED_REASON && !is_rejection_message(self.message())
    }

    /// Replaces the recorded version of this event, unless that is the newer one. Returns the event
    /// if none with its UID is recorded.
    pub fn replace_in(self, events: &mut [Self]) -> Option<Self> {
        let uid = self.uid();
        let Some(known) = events.iter_mut().find(|known| uid.is_some() && known.uid() == uid) else {
            return Some(self);
        };
        if self.is_newer_than(known) {
            *known = self;
        }
        None
    }

    /// Returns whether this version of an event, which was received later, is newer than another.
    /// Events without a numeric resource version are newer if they differ.
    fn is_newer_than(&self, other: &Self) -> bool {
        let version = |event: &Self| event.metadata.resource_version.as_deref()?.parse::<u64>().ok();
        match version(self).zip(version(other)) {
            Some((own, other)) => own > other,
            None => self != other,
        }
    }

    /// Returns whether the type is `Warning`.
    pub fn is_warning(&self) -> bool {
        self.type_.as_deref() == Some("Warning")
    }

    /// Returns the name of the object that the event is about.
    pub fn object_name(&self) -> Option<&str> {
        self.involved_object.name.as_deref()
    }

    /// Returns the UID of the object that the event is about.
    pub fn object_uid(&self) -> Option<&str> {
        self.involved_object.uid.as_deref()
    }

    /// Returns the event without the fields of its metadata by which two objects with the same
    /// content differ.
    pub fn content(&self) -> Value {
        const OWN_FIELDS: [&str; 4] = ["name", "uid", "resourceVersion", "creationTimestamp"];
        let mut event = self.json().clone();
        if let Some(metadata) = event.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !OWN_FIELDS.contains(&field.as_str()));
        }
        event
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(json: Value) -> RecordedPod {
        Recorded::decode(json).unwrap()
    }

    #[test]
    fn strips_the_node_name_from_mirror_pods_only() {
        let named = |annotations: Value| {
            pod(
                json!({"metadata": {"name": "hog-node-1", "annotations": annotations}, "spec": {"nodeName": "node-1"}}),
            )
        };
        assert_eq!(named(json!({pod::CONFIG_MIRROR_ANNOTATION: "hash"})).case_name(), "hog");
        assert_eq!(named(Value::Null).case_name(), "hog-node-1");
        assert_eq!(named(json!({CASE_NAME_ANNOTATION: "hog"})).case_name(), "hog");
    }

    #[test]
    fn a_container_has_run_if_any_start_of_it_is_known() {
        let (first, second) = ("2026-11-21T00:44:46Z", "2026-11-21T00:45:46Z");
        let ended = |start: &str| json!({"terminated": {"startedAt": start}});
        let rows = [
            (json!({"running": {}}), Value::Null, &[][..], true),
            (json!({"running": {"startedAt": second}}), ended(first), &[second, first], true),
            (ended(first), Value::Null, &[first], true),
            (ended(second), ended(first), &[second, first], true),
            (json!({"waiting": {"reason": "CrashLoopBackOff"}}), ended(first), &[first], true),
            (json!({"terminated": {"startedAt": null, "exitCode": 137}}), Value::Null, &[], false),
            (json!({"waiting": {"reason": "PodInitializing"}}), Value::Null, &[], false),
        ];
        for (state, last, starts, has_run) in rows {
            let status = json!({"state": state, "lastState": last});
            let status: ContainerStatus = serde_json::from_value(status).unwrap();
            let observed: Vec<String> = status.starts().map(|start| start.to_string()).collect();
            assert_eq!(
                (observed.as_slice(), status.has_run()),
                (&strings(starts)[..], has_run),
                "{state} {last}"
            );
        }
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    /// A rejection has the reason of an eviction.
    #[test]
    fn a_rejection_at_admission_is_not_an_eviction() {
        let rows = [
            ("Evicted", "The node was low on resource: memory. ", true, false),
            ("Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. ", false, true),
            ("Evicted", "Pod The node had condition: [DiskPressure PIDPressure]. ", false, true),
            ("Evicted", "The node had condition: [MemoryPressure]. ", false, true),
            (
                "Evicted",
                "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ",
                true,
                false,
            ),
            ("Evicted", "", true, false),
            ("OutOfmemory", "Pod was rejected: Node didn't have enough resource: memory", false, true),
            (
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
                false,
                false,
            ),
        ];
        for (reason, message, is_evicted, is_rejected) in rows {
            let pod = pod(json!({"status": {"reason": reason, "message": message}}));
            assert_eq!(
                (pod.is_evicted(), pod.is_rejected()),
                (is_evicted, is_rejected),
                "{reason}: {message}"
            );
            let event: RecordedEvent =
                Recorded::decode(json!({"reason": reason, "message": message})).unwrap();
            assert_eq!(event.is_eviction(), is_evicted, "{reason}: {message}");
        }
    }

    #[test]
    fn only_a_newer_version_of_an_event_replaces_the_recorded_one() {
        let event = |uid: Value, version: Value, count: u32| -> RecordedEvent {
            let metadata = json!({"uid": uid, "resourceVersion": version});
            Recorded::decode(json!({"metadata": metadata, "count": count})).unwrap()
        };
        let rows = [
            (json!("a"), json!("9"), json!("10"), Some(2)),
            (json!("a"), json!("10"), json!("9"), Some(1)),
            (json!("a"), json!("9"), json!("9"), Some(1)),
            (json!("a"), json!("x"), json!("w"), Some(2)),
            (json!("a"), Value::Null, Value::Null, Some(2)),
            // Without a UID, it is another event.
            (Value::Null, json!("9"), json!("10"), None),
        ];
        for (uid, known, listed, count) in rows {
            let mut events = [event(uid.clone(), known.clone(), 1)];
            let unknown = event(uid, listed.clone(), 2).replace_in(&mut events);
            let replaced = unknown.is_none().then_some(events[0].count.unwrap());
            assert_eq!(replaced, count, "{known}, then {listed}");
        }
    }

    #[test]
    fn a_pod_that_the_rules_cannot_read_is_an_error() {
        let with_limit = |limit: &str| {
            let containers = json!([{"name": "a", "resources": {"limits": {"memory": limit}}}]);
            pod(json!({"metadata": {"uid": "u"}, "spec": {"containers": containers}})).as_ranked()
        };
        assert_eq!(with_limit("1Gi").unwrap().metadata.uid, "u");
        let error = with_limit("a lot").unwrap_err().to_string();
        assert!(error.starts_with("failed to decode Pod at spec.containers[0].resources.limits"), "{error}");
    }

    #[test]
    fn missing_fields_read_as_none() {
        let pod = pod(json!({}));
        assert_eq!((pod.name(), pod.uid(), pod.phase(), pod.is_deleting()), ("", None, None, false));
        assert_eq!(pod.container_statuses().count() + pod.conditions().count(), 0);
        assert!(!pod.is_evicted() && pod.kubelet_termination_condition().is_none());
    }
}
