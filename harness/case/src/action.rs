//! The actions of steps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::object_name::{ObjectKind, ObjectName};
use crate::values::{Name, QuantityText, ResizedRequest, WholeSeconds};

/// Action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A request to the API server, whose answer a case can keep.
    Api(ApiRequest),
    /// A change of the node.
    Node(NodeChange),
    /// Reads the logs of the containers of a pod.
    ReadLogs(Name),
    /// Runs a command in a container.
    Exec(ContainerCommand),
}

/// A request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiRequest {
    /// Creates an object of any kind in the namespace of the case.
    Create(Map<String, Value>),
    /// Changes an object.
    Patch(ObjectPatch),
    /// Changes the CPU and memory of a running container.
    Resize(Resize),
    /// Deletes a pod, or another object.
    Delete(Deletion),
    /// Evicts a pod.
    Evict(Name),
}

/// A change of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// Adds a taint.
    Taint(Taint),
    /// Removes the taints with this key.
    Untaint(String),
    /// Cordons the node and evicts the pods of the case.
    Drain,
    /// Uncordons the node.
    Uncordon,
    /// Pauses all processes of the node.
    Pause,
    /// Resumes a paused node.
    Resume,
    /// Restarts the kubelet with these fields of its configuration changed.
    Configure(Map<String, Value>),
    /// Restarts the kubelet with its present configuration.
    RestartKubelet,
    /// Makes an image available on the node.
    LoadImage(String),
    /// Places the manifest of a static pod on the node.
    CreateStaticPod(Map<String, Value>),
    /// Removes the manifest of a static pod of the case, which ends it.
    DeleteStaticPod(Name),
}

impl Action {
    /// Returns the field of a step that states the action.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Api(ApiRequest::Create(_)) => "create",
            Self::Api(ApiRequest::Patch(_)) => "patch",
            Self::Api(ApiRequest::Resize(_)) => "resize",
            Self::Api(ApiRequest::Delete(_)) => "delete",
            Self::Api(ApiRequest::Evict(_)) => "evict",
            Self::Node(NodeChange::Taint(_)) => "taint",
            Self::Node(NodeChange::Untaint(_)) => "untaint",
            Self::Node(NodeChange::Drain) => "drain",
            Self::Node(NodeChange::Uncordon) => "uncordon",
            Self::Node(NodeChange::Pause) => "pause",
            Self::Node(NodeChange::Resume) => "resume",
            Self::Node(NodeChange::Configure(_)) => "configure",
            Self::Node(NodeChange::RestartKubelet) => "restart-kubelet",
            Self::Node(NodeChange::LoadImage(_)) => "load-image",
            Self::Node(NodeChange::CreateStaticPod(_)) => "create-static-pod",
            Self::Node(NodeChange::DeleteStaticPod(_)) => "delete-static-pod",
            Self::ReadLogs(_) => "read-logs",
            Self::Exec(_) => "exec",
        }
    }

    /// Returns whether a step with the action can keep an answer.
    pub(crate) fn has_answer(&self) -> bool {
        match self {
            Self::Api(_) | Self::Exec(_) => true,
            Self::Node(_) | Self::ReadLogs(_) => false,
        }
    }

    /// Returns the existing object that the action is about.
    pub fn object(&self) -> Option<ObjectName> {
        match self {
            Self::Api(ApiRequest::Patch(patch)) => Some(patch.object()),
            Self::Api(ApiRequest::Delete(deletion)) => Some(deletion.object.clone()),
            Self::Api(ApiRequest::Evict(pod) | ApiRequest::Resize(Resize { pod, .. }))
            | Self::ReadLogs(pod)
            | Self::Exec(ContainerCommand { pod, .. }) => {
                Some(ObjectName { kind: ObjectKind::Pod, name: pod.clone() })
            }
            Self::Api(ApiRequest::Create(_)) | Self::Node(_) => None,
        }
    }
}

/// Command in a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ContainerCommand {
    /// Name of the pod.
    pub pod: Name,
    /// Name of the container; by default the first regular one.
    #[serde(default)]
    pub container: Option<Name>,
    /// Program and arguments. No shell interprets them: for one, state `[sh, -c, SCRIPT]`.
    pub command: Vec<String>,
}

/// Change of the resources of a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Resize {
    /// Name of the pod.
    pub pod: Name,
    /// Name of the container; by default the first regular one.
    #[serde(default)]
    pub container: Option<Name>,
    /// New requests; others stay. `allocatable` requests all that the node has for its pods, `60%`
    /// a share of that.
    #[serde(default)]
    pub requests: BTreeMap<ResizableResource, ResizedRequest>,
    /// New limits; others stay.
    #[serde(default)]
    pub limits: BTreeMap<ResizableResource, QuantityText>,
}

/// A resource that a resize can change and that the overhead of a runtime class can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResizableResource {
    /// CPU, such as `500m`.
    Cpu,
    /// Memory, such as `64Mi`.
    Memory,
}

impl ResizableResource {
    /// Returns the name of the resource.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

/// Deletion of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "DeletionFields")]
pub struct Deletion {
    /// The object.
    pub object: ObjectName,
    /// Grace period, instead of that of the pod.
    pub grace_period: Option<WholeSeconds>,
}

/// Deletion of a pod, `{pod: web}`, or of another object, `{kind: ReplicaSet, name: web}`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Deletion")]
struct DeletionFields {
    /// Name of the pod.
    #[serde(default)]
    pod: Option<Name>,
    /// Kind of the object, with `name` instead of `pod`.
    #[serde(default)]
    kind: Option<ObjectKind>,
    /// Name of the object, with `kind`.
    #[serde(default)]
    name: Option<Name>,
    /// Grace period, instead of that of the pod.
    #[serde(default)]
    grace_period: Option<WholeSeconds>,
}

/// A deletion without an object, with two, or with a grace period that does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeletionError {
    /// Neither a pod nor a kind with a name, or both.
    #[error("the deletion needs either `pod`, or `kind` and `name`")]
    Target,
    /// Only pods have a grace period.
    #[error("`grace-period` applies only to a pod")]
    GracePeriod,
}

impl TryFrom<DeletionFields> for Deletion {
    type Error = DeletionError;

    fn try_from(fields: DeletionFields) -> Result<Self, DeletionError> {
        let object = match (fields.pod, fields.kind, fields.name) {
            (Some(name), None, None) => ObjectName { kind: ObjectKind::Pod, name },
            (None, Some(kind), Some(name)) => ObjectName { kind, name },
            _ => return Err(DeletionError::Target),
        };
        if fields.grace_period.is_some() && object.kind != ObjectKind::Pod {
            return Err(DeletionError::GracePeriod);
        }
        Ok(Self { object, grace_period: fields.grace_period })
    }
}

impl JsonSchema for Deletion {
    fn schema_name() -> Cow<'static, str> {
        DeletionFields::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        DeletionFields::json_schema(generator)
    }
}

/// Merge patch of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ObjectPatch {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Name of the object.
    pub name: Name,
    /// JSON merge patch, such as `{spec: {replicas: 3}}`; `null` removes a field.
    pub patch: Map<String, Value>,
}

impl ObjectPatch {
    /// Returns the object that the patch changes.
    pub fn object(&self) -> ObjectName {
        ObjectName { kind: self.kind, name: self.name.clone() }
    }
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Taint {
    /// Key, such as `evictlab.dev/out`.
    pub key: String,
    /// Value.
    #[serde(default)]
    pub value: Option<String>,
    /// Effect.
    pub effect: TaintEffect,
}

/// Effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// New pods are not scheduled to the node.
    NoSchedule,
    /// New pods are scheduled to the node if no other node has room.
    PreferNoSchedule,
    /// The pods of the node are evicted.
    NoExecute,
}
