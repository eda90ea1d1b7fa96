//! The fields of Events, Pods and Nodes that explanations depend on. Missing and null fields are
//! accepted: the objects may come from any cluster and tool.

use evictlab_rules::message::EVICTED_REASON;
use serde::{Deserialize, Deserializer};

/// A core/v1 Event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Event {
    pub reason: Option<String>,
    pub message: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    pub involved_object: ObjectReference,
    #[serde(deserialize_with = "null_is_default")]
    pub source: EventSource,
    pub reporting_component: Option<String>,
    pub reporting_instance: Option<String>,
}

/// The object that an event is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ObjectReference {
    pub kind: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
}

/// The component that sent an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EventSource {
    pub component: Option<String>,
    pub host: Option<String>,
}

/// A Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    #[serde(deserialize_with = "null_is_default")]
    pub metadata: Metadata,
    #[serde(deserialize_with = "null_is_default")]
    pub spec: PodSpec,
    #[serde(deserialize_with = "null_is_default")]
    pub status: PodStatus,
    /// The same pod as the eviction rules read it; `None` if they cannot.
    #[serde(skip)]
    pub manifest: Option<evictlab_rules::pod::Pod>,
    /// True if the pod was read from text, which has neither conditions nor annotations.
    #[serde(skip)]
    pub is_partial: bool,
}

/// Metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub uid: Option<String>,
}

/// The spec of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodSpec {
    pub node_name: Option<String>,
}

/// The status of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodStatus {
    pub phase: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    pub conditions: Vec<PodCondition>,
    #[serde(deserialize_with = "null_is_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_is_default")]
    pub container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_is_default")]
    pub ephemeral_container_statuses: Vec<ContainerStatus>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodCondition {
    #[serde(rename = "type")]
    pub condition_type: Option<String>,
    pub status: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
}

/// The status of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    pub name: String,
    #[serde(deserialize_with = "null_is_default")]
    pub state: ContainerState,
    #[serde(deserialize_with = "null_is_default")]
    pub last_state: ContainerState,
    pub restart_count: Option<i64>,
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
}

/// A state of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    pub waiting: Option<Waiting>,
    pub terminated: Option<Terminated>,
}

/// The state of a container that waits to be created.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Waiting {}

/// The state of a container that ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Terminated {
    pub reason: Option<String>,
    pub started_at: Option<String>,
    pub exit_code: Option<i64>,
}

/// A Node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    #[serde(deserialize_with = "null_is_default")]
    pub metadata: Metadata,
    #[serde(deserialize_with = "null_is_default")]
    pub status: NodeStatus,
}

/// The status of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeStatus {
    #[serde(deserialize_with = "null_is_default")]
    pub node_info: NodeSystemInfo,
}

/// Versions of a node's components.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeSystemInfo {
    pub kubelet_version: Option<String>,
}

impl Event {
    /// Reason and object, for a message about an input without evictions.
    pub(crate) fn describe(&self) -> String {
        let object = &self.involved_object;
        let [reason, kind, name] = [&self.reason, &object.kind, &object.name].map(text);
        format!("an event {reason} about {kind} {}", qualified(object.namespace.as_deref(), name))
    }

    /// The component that sent the event.
    pub(crate) fn component(&self) -> Option<&str> {
        let components = [&self.source.component, &self.reporting_component];
        components.into_iter().find_map(|name| name.as_deref().filter(|name| !name.is_empty()))
    }
}

impl Pod {
    /// Name and phase, for a message about an input without evictions; with the first container
    /// that failed.
    pub(crate) fn describe(&self) -> String {
        let name = qualified(self.metadata.namespace.as_deref(), text(&self.metadata.name));
        let failed = self.status.all_container_statuses().find_map(|status| {
            let end = status.state.terminated.as_ref().or(status.last_state.terminated.as_ref())?;
            let code = end.exit_code.filter(|code| *code != 0)?;
            Some(format!(" (container {} ended with exit code {code})", status.name))
        });
        format!("pod {name} in phase {}{}", text(&self.status.phase), failed.unwrap_or_default())
    }

    /// Returns whether a container of the pod ran.
    pub(crate) fn has_run(&self) -> bool {
        self.status.all_container_statuses().any(ContainerStatus::has_run)
    }
}

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("?")
}

impl PodStatus {
    /// Statuses of init, regular and ephemeral containers.
    pub(crate) fn all_container_statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        let lists =
            [&self.init_container_statuses, &self.container_statuses, &self.ephemeral_container_statuses];
        lists.into_iter().flatten()
    }

    /// The message of a pod that the kubelet evicted.
    pub(crate) fn eviction_message(&self) -> Option<&str> {
        self.message.as_deref().filter(|_| self.reason.as_deref() == Some(EVICTED_REASON))
    }

    /// The `DisruptionTarget` condition that the kubelet sets when it evicts a pod (KEP-3329).
    pub(crate) fn kubelet_termination(&self) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| {
            condition.condition_type.as_deref() == Some("DisruptionTarget")
                && condition.reason.as_deref() == Some("TerminationByKubelet")
        })
    }
}

impl ContainerStatus {
    /// Reason of the termination, if the container is terminated.
    pub(crate) fn termination_reason(&self) -> Option<&str> {
        self.state.terminated.as_ref()?.reason.as_deref()
    }

    /// Returns whether the status shows that the container ran.
    fn has_run(&self) -> bool {
        let started =
            |state: &ContainerState| state.terminated.as_ref().is_some_and(|end| end.started_at.is_some());
        self.ran_before() || started(&self.state) || self.last_state.terminated.is_some()
    }

    fn ran_before(&self) -> bool {
        self.restart_count.unwrap_or(0) > 0 || self.container_id.as_deref().is_some_and(|id| !id.is_empty())
    }

    /// Returns whether the container never started. `TerminatePod` in
    /// `pkg/kubelet/status/status_manager.go` gives such containers a termination without a start
    /// time; the kubelet reports the same if it lost the real termination state.
    pub(crate) fn never_ran(&self) -> bool {
        if self.ran_before() {
            return false;
        }
        let unstarted = self.state.terminated.as_ref().is_some_and(|end| end.started_at.is_none());
        unstarted || (self.state.waiting.is_some() && self.last_state.terminated.is_none())
    }
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// `namespace/name`, or the name.
pub(crate) fn qualified(namespace: Option<&str>, name: &str) -> String {
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}
