//! Status of a pod (`v1.PodStatus`), with the fields that kubelets up to 1.36 write.
//!
//! k8s-openapi's types for 1.33 lack `resources`, `allocatedResources` and `observedGeneration`,
//! and omit times that Go writes as `null`.

use std::collections::BTreeMap;
use std::fmt;

use evictlab_rules::message::EVICTED_REASON;
use evictlab_rules::pod::QosClass;
use k8s_openapi::api::core::v1::{
    ContainerStateRunning, ContainerStateWaiting, ContainerUser, HostIP, PodIP, ResourceRequirements,
    VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ObjectExt;

/// Status of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<Phase>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<PodCondition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nominated_node_name: Option<String>,
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub(crate) host_ip: Option<String>,
    #[serde(rename = "hostIPs", skip_serializing_if = "Option::is_none")]
    pub(crate) host_ips: Option<Vec<HostIP>>,
    #[serde(rename = "podIP", skip_serializing_if = "Option::is_none")]
    pub(crate) pod_ip: Option<String>,
    #[serde(rename = "podIPs", skip_serializing_if = "Option::is_none")]
    pub(crate) pod_ips: Option<Vec<PodIP>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_time: Option<Time>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) container_statuses: Vec<ContainerStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) qos_class: Option<QosClass>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ephemeral_container_statuses: Vec<ContainerStatus>,
    /// Requests of the whole pod, since 1.36.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allocated_resources: Option<BTreeMap<String, Quantity>>,
    /// Resources of the whole pod, since 1.36.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<ResourceRequirements>,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
    #[serde(other)]
    Unknown,
}

/// Condition of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodCondition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    pub(crate) status: ConditionStatus,
    pub(crate) last_probe_time: Option<Time>,
    pub(crate) last_transition_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ConditionStatus {
    True,
    False,
    #[default]
    #[serde(other)]
    Unknown,
}

/// Status of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    pub(crate) state: ContainerState,
    pub(crate) last_state: ContainerState,
    pub(crate) ready: bool,
    pub(crate) restart_count: u64,
    pub(crate) image: String,
    #[serde(rename = "imageID")]
    pub(crate) image_id: String,
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub(crate) container_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allocated_resources: Option<BTreeMap<String, Quantity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<ResourceRequirements>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) volume_mounts: Vec<VolumeMountStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<ContainerUser>,
}

/// State of a container: at most one field is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<ContainerStateWaiting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<ContainerStateRunning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminated: Option<TerminatedState>,
}

/// End of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TerminatedState {
    pub(crate) exit_code: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    pub(crate) started_at: Option<Time>,
    pub(crate) finished_at: Option<Time>,
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub(crate) container_id: Option<String>,
}

impl TerminatedState {
    /// Message of a container that the runtime has lost when its pod has ended.
    pub(crate) const LOST: &str = "The container could not be located when the pod was terminated";

    /// Returns the end of a container that the runtime has lost.
    pub(crate) fn unknown(message: &str) -> Self {
        Self {
            exit_code: 137,
            message: Some(message.to_owned()),
            reason: Some("ContainerStatusUnknown".to_owned()),
            ..Self::default()
        }
    }
}

impl PodStatus {
    /// Reads the status of a pod. A missing or invalid status is empty: the API server has
    /// validated the object.
    pub(crate) fn of(pod: &Value) -> Self {
        pod.read("status")
    }

    /// Returns whether the phase is final.
    pub(crate) fn is_terminal(&self) -> bool {
        self.phase.is_some_and(Phase::is_terminal)
    }

    /// Returns whether the pod has failed because it was evicted.
    pub(crate) fn is_evicted(&self) -> bool {
        self.reason.as_deref() == Some(EVICTED_REASON)
    }

    /// Returns the condition of a type.
    pub(crate) fn condition(&self, kind: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Returns whether the condition of a type has the status `True`.
    pub(crate) fn has_condition(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Returns the status of the container with a name, of any kind.
    pub(crate) fn container(&self, name: &str) -> Option<&ContainerStatus> {
        let others = self.init_container_statuses.iter().chain(&self.ephemeral_container_statuses);
        self.container_statuses.iter().chain(others).find(|status| status.name == name)
    }

    /// Sets the addresses of the pod to a single one.
    pub(crate) fn set_pod_ip(&mut self, ip: &str) {
        self.pod_ip = Some(ip.to_owned());
        self.pod_ips = Some(vec![PodIP { ip: ip.to_owned() }]);
    }
}

impl Phase {
    /// Returns whether the phase is final.
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl PodCondition {
    /// Creates a condition without times. An empty reason or message is omitted.
    pub(crate) fn new(kind: &str, status: ConditionStatus, reason: &str, message: &str) -> Self {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            kind: kind.to_owned(),
            status,
            reason: text(reason),
            message: text(message),
            ..Self::default()
        }
    }

    /// Creates a `DisruptionTarget` condition.
    pub(crate) fn disruption(reason: &str, message: &str) -> Self {
        Self::new("DisruptionTarget", ConditionStatus::True, reason, message)
    }

    /// Sets the generation that scheduler and controllers report since 1.34
    /// (`PodObservedGenerationTracking`, KEP-5067).
    pub(crate) fn observing(self, generation: Option<i64>) -> Self {
        Self { observed_generation: generation, ..self }
    }

    /// Sets the condition in a pod (`podutil.UpdatePodCondition`). `now` is the transition time if
    /// the status changes.
    pub(crate) fn set(mut self, pod: &mut Value, now: Time) {
        pod.status_mut().change("conditions", |conditions: &mut Vec<Self>| {
            let same = conditions.iter().find(|old| old.kind == self.kind && old.status == self.status);
            self.last_transition_time = same.map_or(Some(now), |old| old.last_transition_time.clone());
            self.put(conditions);
        });
    }

    /// Adds the condition to a list, or replaces the one of its type.
    pub(crate) fn put(self, conditions: &mut Vec<Self>) {
        match conditions.iter_mut().find(|old| old.kind == self.kind) {
            Some(old) => *old = self,
            None => conditions.push(self),
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}

impl ContainerStatus {
    /// Returns whether the container waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state.waiting.is_some()
    }

    /// Returns why the container waits; empty if it does not wait.
    pub(crate) fn waiting_reason(&self) -> &str {
        let waiting = self.state.waiting.as_ref();
        waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default()
    }

    /// Returns whether the container runs.
    pub(crate) fn is_running(&self) -> bool {
        self.state.running.is_some()
    }

    /// Returns whether the container has ended.
    pub(crate) fn is_terminated(&self) -> bool {
        self.state.terminated.is_some()
    }

    /// Returns the end of the container's previous run.
    pub(crate) fn last_terminated(&self) -> Option<&TerminatedState> {
        self.last_state.terminated.as_ref()
    }

    /// Returns the exit code of a container that has ended.
    pub(crate) fn exit_code(&self) -> Option<i64> {
        self.state.terminated.as_ref().map(|terminated| terminated.exit_code)
    }
}

impl ContainerState {
    /// Creates the state of a container that waits.
    pub(crate) fn waiting(reason: Option<&str>, message: Option<&str>) -> Self {
        let (reason, message) = (reason.map(str::to_owned), message.map(str::to_owned));
        Self { waiting: Some(ContainerStateWaiting { reason, message }), ..Self::default() }
    }

    /// Creates the state of a container that has ended.
    pub(crate) fn terminated(end: TerminatedState) -> Self {
        Self { terminated: Some(end), ..Self::default() }
    }
}
