//! The steps of a case.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::expression::Expression;
use crate::values::{Duration, Name, QuantityText, ResizedRequest};

/// A step. It waits until `when` holds, then for the time `wait`, then runs its action. A step
/// without an action only waits.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "StepFields")]
pub struct Step {
    /// Purpose of the step, shown while the case runs.
    pub about: Option<String>,
    /// Name under which `answers` keeps the answer of the API.
    pub answer: Option<Name>,
    /// Condition to wait for.
    pub when: Option<Expression>,
    /// Time to wait after `when` holds.
    pub wait: Option<Duration>,
    /// The action.
    pub action: Option<Action>,
}

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
}

/// A step. It waits until `when` holds, then for the time `wait`, then runs its action. A step
/// without an action only waits.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Step")]
struct StepFields {
    /// Purpose of the step, shown while the case runs.
    #[serde(default)]
    about: Option<String>,
    /// Name under which `answers` keeps the answer of the API, `{code, reason, message}`, with the
    /// code 200 or 201 on success; of `exec`, `{code, stdout, stderr}` with the exit status.
    #[serde(default)]
    answer: Option<Name>,
    /// Condition to wait for.
    #[serde(default)]
    when: Option<Expression>,
    /// Time to wait after `when` holds.
    #[serde(default)]
    wait: Option<Duration>,
    /// Creates an object of any kind, such as a pod, in the namespace of the case.
    #[serde(default)]
    create: Option<Map<String, Value>>,
    /// Changes an object in the namespace of the case by a JSON merge patch.
    #[serde(default)]
    patch: Option<ObjectPatch>,
    /// Changes the CPU and memory of a running container in place (`pods/resize`, Kubernetes 1.33
    /// and later).
    #[serde(default)]
    resize: Option<Resize>,
    /// Deletes a pod, or another object in the namespace of the case.
    #[serde(default)]
    delete: Option<Deletion>,
    /// Evicts a pod through the API (`pods/eviction`).
    #[serde(default)]
    evict: Option<Name>,
    /// Adds a taint to the node.
    #[serde(default)]
    taint: Option<Taint>,
    /// Removes the taints with this key from the node.
    #[serde(default)]
    untaint: Option<String>,
    /// Cordons the node and evicts the pods of the case through the API, as `kubectl drain` does.
    #[serde(default)]
    drain: bool,
    /// Uncordons the node.
    #[serde(default)]
    uncordon: bool,
    /// Pauses all processes of the node (`docker pause`).
    #[serde(default)]
    pause: bool,
    /// Resumes a paused node.
    #[serde(default)]
    resume: bool,
    /// Restarts the kubelet with these fields of its configuration changed, in addition to those
    /// of the case.
    #[serde(default)]
    configure: Option<Map<String, Value>>,
    /// Restarts the kubelet with its present configuration; containers continue to run.
    #[serde(default)]
    restart_kubelet: bool,
    /// Reads the logs of the containers of a pod into `logs`; the logs of an evicted pod may be
    /// lost.
    #[serde(default)]
    read_logs: Option<Name>,
    /// Runs a command in a running container of a pod, as `kubectl exec` does, and waits for its
    /// end. An exit status other than 0 is an error, unless `answer` keeps it.
    #[serde(default)]
    exec: Option<ContainerCommand>,
    /// Pulls or loads an image into the node; the image is not pinned.
    #[serde(default)]
    load_image: Option<String>,
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
    /// New requests; others stay. `allocatable` requests all that the node has for its pods.
    #[serde(default)]
    pub requests: BTreeMap<ResizableResource, ResizedRequest>,
    /// New limits; others stay.
    #[serde(default)]
    pub limits: BTreeMap<ResizableResource, QuantityText>,
}

/// A resource that a resize can change.
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

/// A step with two actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the step has two actions, `{first}` and `{second}`: split it into two steps")]
pub struct TwoActions {
    pub(crate) first: &'static str,
    pub(crate) second: &'static str,
}

/// Deletion of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "DeletionFields")]
pub struct Deletion {
    /// The object.
    pub object: ObjectReference,
    /// Grace period, instead of that of the pod.
    pub grace_period: Option<Duration>,
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
    grace_period: Option<Duration>,
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

/// An object in the namespace of the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// Kind.
    pub kind: ObjectKind,
    /// Name.
    pub name: Name,
}

/// Kinds of objects that steps can change and delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are those of Kubernetes")]
pub enum ObjectKind {
    ConfigMap,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    LimitRange,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ResourceQuota,
    Secret,
    Service,
    ServiceAccount,
    StatefulSet,
}

impl ObjectKind {
    /// Returns the kind as in manifests, such as `DaemonSet`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::CronJob => "CronJob",
            Self::DaemonSet => "DaemonSet",
            Self::Deployment => "Deployment",
            Self::Job => "Job",
            Self::LimitRange => "LimitRange",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::Pod => "Pod",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::ReplicaSet => "ReplicaSet",
            Self::ResourceQuota => "ResourceQuota",
            Self::Secret => "Secret",
            Self::Service => "Service",
            Self::ServiceAccount => "ServiceAccount",
            Self::StatefulSet => "StatefulSet",
        }
    }

    /// Returns the API version of the kind, such as `apps/v1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::CronJob | Self::Job => "batch/v1",
            Self::DaemonSet | Self::Deployment | Self::ReplicaSet | Self::StatefulSet => "apps/v1",
            Self::PodDisruptionBudget => "policy/v1",
            Self::ConfigMap
            | Self::LimitRange
            | Self::PersistentVolumeClaim
            | Self::Pod
            | Self::ResourceQuota
            | Self::Secret
            | Self::Service
            | Self::ServiceAccount => "v1",
        }
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
    /// Effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Changes to the node, made before the pods are created and reverted after the case.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NodeSetup {
    /// Memory limit of the whole node, as set by Docker on the container of a kind node; the
    /// kubelet is not aware of it.
    #[serde(default)]
    pub memory: Option<QuantityText>,
    /// Memory that huge pages of 2Mi reserve on the node. The embedded cluster reserves it; other nodes
    /// have the huge pages of their host, and the case is skipped where it has fewer.
    #[serde(default)]
    pub huge_pages: Option<QuantityText>,
    /// Swap space that the node has at least; the case is skipped where the host has less. The embedded
    /// cluster has none.
    #[serde(default)]
    pub swap: Option<QuantityText>,
    /// Extended resources of the node, such as `evictlab.dev/slots: "2"`.
    #[serde(default)]
    pub capacity: BTreeMap<String, QuantityText>,
    /// Size of an image that no container uses, which the node has before the kubelet starts with the
    /// case's configuration.
    #[serde(default)]
    pub unused_image: Option<QuantityText>,
    /// File systems apart from nodefs. The kubelet is restarted, and detects them.
    #[serde(default)]
    pub file_systems: Option<FileSystems>,
}

/// File systems of a node apart from nodefs, which has volumes and logs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileSystems {
    /// Size of a new file system for images and writable layers (a dedicated imagefs). The images
    /// of a kind node take about 1Gi of it.
    pub imagefs: QuantityText,
    /// Inodes of that file system; one per 16Ki of its size by default, as of ext4.
    #[serde(default)]
    pub imagefs_inodes: Option<u64>,
    /// File system of the writable layers.
    #[serde(default)]
    pub containerfs: ContainerfsPlacement,
}

/// File system of the writable layers (containerfs) beside a new imagefs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerfsPlacement {
    /// imagefs.
    #[default]
    Imagefs,
    /// nodefs: a split image file system (KEP-4191). containerd does not report it to the kubelet,
    /// so that only the model has it.
    Nodefs,
}

/// Assignment of the pods of a case to the node.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PodPlacement {
    /// By `spec.nodeName`, bypassing the scheduler; the pods tolerate all taints.
    #[default]
    Bound,
    /// By the scheduler, restricted to this node; taints apply.
    Scheduled,
}

impl ObjectPatch {
    /// Returns the object that the patch changes.
    pub fn object(&self) -> ObjectReference {
        ObjectReference { kind: self.kind, name: self.name.clone() }
    }
}

impl TryFrom<StepFields> for Step {
    type Error = TwoActions;

    fn try_from(fields: StepFields) -> Result<Self, TwoActions> {
        let StepFields { about, answer, when, wait, .. } = fields;
        let stated = [
            fields.create.map(|object| Action::Api(ApiRequest::Create(object))),
            fields.patch.map(|patch| Action::Api(ApiRequest::Patch(patch))),
            fields.resize.map(|resize| Action::Api(ApiRequest::Resize(resize))),
            fields.delete.map(|deletion| Action::Api(ApiRequest::Delete(deletion))),
            fields.evict.map(|pod| Action::Api(ApiRequest::Evict(pod))),
            fields.taint.map(|taint| Action::Node(NodeChange::Taint(taint))),
            fields.untaint.map(|key| Action::Node(NodeChange::Untaint(key))),
            fields.drain.then_some(Action::Node(NodeChange::Drain)),
            fields.uncordon.then_some(Action::Node(NodeChange::Uncordon)),
            fields.pause.then_some(Action::Node(NodeChange::Pause)),
            fields.resume.then_some(Action::Node(NodeChange::Resume)),
            fields.configure.map(|changes| Action::Node(NodeChange::Configure(changes))),
            fields.restart_kubelet.then_some(Action::Node(NodeChange::RestartKubelet)),
            fields.load_image.map(|image| Action::Node(NodeChange::LoadImage(image))),
            fields.read_logs.map(Action::ReadLogs),
            fields.exec.map(Action::Exec),
        ];
        let mut stated = stated.into_iter().flatten();
        let action = stated.next();
        match (&action, stated.next()) {
            (Some(first), Some(second)) => Err(TwoActions { first: first.field(), second: second.field() }),
            _ => Ok(Self { about, answer, when, wait, action }),
        }
    }
}

impl TryFrom<DeletionFields> for Deletion {
    type Error = DeletionError;

    fn try_from(fields: DeletionFields) -> Result<Self, DeletionError> {
        let object = match (fields.pod, fields.kind, fields.name) {
            (Some(name), None, None) => ObjectReference { kind: ObjectKind::Pod, name },
            (None, Some(kind), Some(name)) => ObjectReference { kind, name },
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

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        StepFields::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        StepFields::json_schema(generator)
    }
}

impl Step {
    /// Returns the object that the step creates.
    pub fn created_object(&self) -> Option<&Map<String, Value>> {
        match &self.action {
            Some(Action::Api(ApiRequest::Create(object))) => Some(object),
            _ => None,
        }
    }

    /// Returns the resize that the step requests.
    pub fn resize(&self) -> Option<&Resize> {
        match &self.action {
            Some(Action::Api(ApiRequest::Resize(resize))) => Some(resize),
            _ => None,
        }
    }

    /// Returns the step's change of the node.
    pub fn node_change(&self) -> Option<&NodeChange> {
        match &self.action {
            Some(Action::Node(change)) => Some(change),
            _ => None,
        }
    }
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
            Self::ReadLogs(_) => "read-logs",
            Self::Exec(_) => "exec",
        }
    }

    /// Returns the existing object that the action is about.
    pub fn object(&self) -> Option<ObjectReference> {
        match self {
            Self::Api(ApiRequest::Patch(patch)) => Some(patch.object()),
            Self::Api(ApiRequest::Delete(deletion)) => Some(deletion.object.clone()),
            Self::Api(ApiRequest::Evict(pod) | ApiRequest::Resize(Resize { pod, .. }))
            | Self::ReadLogs(pod)
            | Self::Exec(ContainerCommand { pod, .. }) => {
                Some(ObjectReference { kind: ObjectKind::Pod, name: pod.clone() })
            }
            Self::Api(ApiRequest::Create(_)) | Self::Node(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_action_that_it_states() {
        type IsExpected = fn(Option<Action>) -> bool;
        let is_expected: [(&str, IsExpected); 8] = [
            ("{evict: p}", |action| matches!(action, Some(Action::Api(ApiRequest::Evict(_))))),
            ("{drain: true}", |action| matches!(action, Some(Action::Node(NodeChange::Drain)))),
            ("{untaint: a}", |action| action == Some(Action::Node(NodeChange::Untaint("a".to_owned())))),
            ("{read-logs: p}", |action| matches!(action, Some(Action::ReadLogs(_)))),
            ("{exec: {pod: p, command: [ls]}}", |action| matches!(action, Some(Action::Exec(_)))),
            ("{load-image: 'stress:1'}", |action| {
                action == Some(Action::Node(NodeChange::LoadImage("stress:1".to_owned())))
            }),
            ("{resize: {pod: p, requests: {memory: 64Mi}}}", |action| {
                matches!(action, Some(Action::Api(ApiRequest::Resize(_))))
            }),
            ("{wait: 3s}", |action| action.is_none()),
        ];
        for (yaml, is_expected) in is_expected {
            let step: Step = serde_saphyr::from_str(yaml).unwrap();
            assert!(is_expected(step.action), "{yaml}");
        }
    }
}
