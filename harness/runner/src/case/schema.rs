//! The shape of a case file. The JSON Schema that is checked in is generated from these types.

use std::collections::BTreeMap;

use evictlab_embedded::fault::Fault;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fact::{Cgroup, Fact, Rate};
use super::step::{NodeSetup, Placed, Step};
use super::values::{Duration, KubeletReq, Name, QuantityText, Upstream, UsageBound};
use crate::cel::Expression;

/// One behaviour of the kubelet: what is put on a node, and what the kubelet must say about it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// The case's name, the file's own without `.yaml`.
    pub name: Name,
    /// One sentence: what holds when the case passes.
    pub about: String,
    /// What a person should conclude when it fails.
    #[serde(default)]
    pub when_it_fails: Option<String>,
    /// Ginkgo labels, such as `Serial`, `Disruptive`, `Slow`, `Feature:Eviction`.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Upstream issues and pull requests that it is about.
    #[serde(default)]
    pub upstream: Vec<Upstream>,
    /// The kubelets that it holds for; others skip it.
    #[serde(default)]
    pub kubelet: KubeletReq,
    /// The cgroup version that it holds for; others skip it.
    #[serde(default)]
    pub cgroup: Option<Cgroup>,
    /// How the node is put under pressure; none for a case that needs no pressure.
    #[serde(default)]
    pub pressure: Option<Pressure>,
    /// Fields merged into the node's KubeletConfiguration while the case runs.
    #[serde(default)]
    pub kubelet_config: Map<String, Value>,
    /// What the node is given while the case runs.
    #[serde(default)]
    pub node: NodeSetup,
    /// Priority classes by name, with their values. Pods name them in `priorityClassName`; the harness gives them names that nobody else has.
    #[serde(default)]
    pub priority_classes: BTreeMap<Name, i32>,
    /// Pods from files on the node (`staticPodPath`).
    #[serde(default)]
    pub static_pods: Vec<Map<String, Value>>,
    /// Objects of any kind that are made before the pods, such as a Deployment or a PodDisruptionBudget.
    #[serde(default)]
    pub objects: Vec<Map<String, Value>>,
    /// How the pods come to their node.
    #[serde(default)]
    pub placed: Placed,
    /// The pods, as `kubectl create` would take them (apiVersion and kind may be left out).
    #[serde(default)]
    pub pods: Vec<Map<String, Value>>,
    /// Ephemeral containers, added once every container of their pod runs.
    #[serde(default)]
    pub ephemeral_containers: Vec<EphemeralContainer>,
    /// What is done once the pods are created, one step after the other.
    #[serde(default, rename = "do")]
    pub steps: Vec<Step>,
    /// When the case is over, once every step is done. By default, when everything in `expect` that can be waited for was seen.
    #[serde(default)]
    pub until: Option<Expression>,
    /// What goes wrong, with times since the first pod is created. For the embedded cluster; elsewhere the case is skipped.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What must be seen.
    pub expect: Expect,
    /// Kubelets on which something else is known to be seen.
    #[serde(default)]
    pub known_bugs: Vec<KnownBug>,
    /// How long the whole case may take without progress before it ends as an error; the default is 5m.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// Why a model cannot tell the verdict of real kubelets: there the case is skipped.
    #[serde(default)]
    pub on_a_model: Option<String>,
}

impl Case {
    /// Every expression of the case.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let of_steps = self.steps.iter().filter_map(|step| step.when.as_ref());
        let of_bugs = self.known_bugs.iter().flat_map(|bug| &bug.that);
        let facts = self.expect.that.iter().chain(of_bugs).map(|fact| &fact.value);
        of_steps.chain(&self.until).chain(facts).chain(self.expect.rate.as_ref().map(|rate| &rate.of))
    }

    /// How many containers its pods have together, ephemeral ones included.
    pub fn containers(&self) -> usize {
        let in_pods: usize = self
            .pods
            .iter()
            .flat_map(|pod| {
                ["initContainers", "containers"].map(|list| pod.get("spec").and_then(|spec| spec.get(list)))
            })
            .filter_map(|list| Some(list?.as_array()?.len()))
            .sum();
        in_pods + self.ephemeral_containers.len()
    }

    /// Whether an expression of it speaks of a variable.
    pub fn speaks_of(&self, variable: &str) -> bool {
        self.expressions().any(|expression| expression.speaks_of(variable))
    }
}

/// Pressure on one signal of the node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pressure {
    /// The eviction signal.
    pub signal: Signal,
    /// What is set so that pressure comes.
    #[serde(default)]
    pub by: By,
    /// How far below what the node has now the threshold is set; by `kube-reserved`, how much more pods may take than they have now.
    #[serde(default)]
    pub distance: Option<QuantityText>,
    /// A hard threshold beside the soft one, so far below what the node has now. The container that grows crosses this one, too.
    #[serde(default)]
    pub hard_distance: Option<QuantityText>,
    /// The threshold in percent of what the node's whole capacity is.
    #[serde(default)]
    pub as_percentage: bool,
    /// What the case's other containers take together. The one that grows takes so much less: once they are gone, the node has enough again.
    #[serde(default)]
    pub others: Option<QuantityText>,
    /// The least time from the start of the pods to the crossing of the threshold; slow nodes get more.
    #[serde(default)]
    pub ramp: Option<Duration>,
    /// A soft threshold with this grace instead of a hard one.
    #[serde(default)]
    pub soft_grace: Option<Duration>,
}

/// How a node is made to have little.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// By a threshold close below what it has.
    #[default]
    Threshold,
    /// By reserving all other memory for Kubernetes' own processes (`kubeReserved`), which bounds the pods' cgroup. No threshold is set.
    KubeReserved,
}

/// The eviction signals that a case can starve.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
pub enum Signal {
    /// The node's memory: capacity less working set. A node of its own.
    #[serde(rename = "memory.available")]
    MemoryAvailable,
    /// Free bytes of the kubelet's file system. Host-wide in kind.
    #[serde(rename = "nodefs.available")]
    NodefsAvailable,
    /// Free inodes of the same. Host-wide in kind.
    #[serde(rename = "nodefs.inodesFree")]
    NodefsInodesFree,
    /// Process ids that are left. Host-wide in kind.
    #[serde(rename = "pid.available")]
    PidAvailable,
}

impl Signal {
    /// The signal as the kubelet's configuration names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "memory.available",
            Self::NodefsAvailable => "nodefs.available",
            Self::NodefsInodesFree => "nodefs.inodesFree",
            Self::PidAvailable => "pid.available",
        }
    }

    /// What a kubelet calls the starved resource.
    pub fn resource(self) -> Resource {
        match self {
            Self::MemoryAvailable => Resource::Memory,
            Self::NodefsAvailable => Resource::EphemeralStorage,
            Self::NodefsInodesFree => Resource::Inodes,
            Self::PidAvailable => Resource::Pids,
        }
    }

    /// Whether it counts bytes; else inodes or processes, one by one.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::MemoryAvailable | Self::NodefsAvailable)
    }
}

/// An ephemeral container for a pod of the case.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EphemeralContainer {
    /// The pod, by name.
    pub pod: Name,
    /// The container, as the API takes it.
    pub container: Map<String, Value>,
}

/// What must be seen. What is not stated is not asked for, but the rules' invariants always are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Expect {
    /// The pods that are evicted, in any order; every other pod survives. `message` speaks of the first.
    #[serde(default)]
    pub evicted: Vec<Name>,
    /// What the eviction message says.
    #[serde(default)]
    pub message: Option<Message>,
    /// Which of the event, the status and the `DisruptionTarget` condition must be there and say the same.
    #[serde(default)]
    pub witnesses: Option<Vec<Witness>>,
    /// Whether the event carries the offender annotations.
    #[serde(default)]
    pub annotations: Option<Presence>,
    /// Whether the pod has a `DisruptionTarget` condition.
    #[serde(default)]
    pub disruption_target: Option<Presence>,
    /// The most time from the Evicted event to the end of the pod's last container.
    #[serde(default)]
    pub killed_within: Option<Duration>,
    /// The API refuses an ephemeral container of the case.
    #[serde(default)]
    pub refused: Option<Refused>,
    /// Pod name to the containers that the node's Summary lists for it.
    #[serde(default)]
    pub summary: BTreeMap<Name, Vec<Name>>,
    /// Pods of which it is left open whether they are evicted.
    #[serde(default)]
    pub may_be_evicted: Vec<Name>,
    /// What must be true of everything that was seen.
    #[serde(default)]
    pub that: Vec<Fact>,
    /// What is counted over many pods or many runs of the case.
    #[serde(default)]
    pub rate: Option<Rate>,
}

/// An eviction message. `containers`, if given, is the whole list of those named, in any order.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Message {
    /// The starved resource.
    #[serde(default)]
    pub resource: Option<Resource>,
    /// The containers that are named, with their figures.
    #[serde(default)]
    pub containers: Option<BTreeMap<Name, Figures>>,
    /// The pod-level sentence (1.34 and newer). Not there unless stated, where `containers` is stated.
    #[serde(default)]
    pub pod: Option<Figures>,
    /// "Usage of EmptyDir volume … exceeds the limit …".
    #[serde(default)]
    pub emptydir_limit: Option<VolumeLimit>,
    /// "Pod ephemeral local storage usage exceeds the total limit of containers …": the limit.
    #[serde(default)]
    pub pod_limit: Option<QuantityText>,
    /// "Container … exceeded its local ephemeral storage limit …".
    #[serde(default)]
    pub container_limit: Option<ContainerLimit>,
}

/// A resource as eviction messages and `starved_resource` name it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Memory.
    Memory,
    /// Bytes of nodefs, imagefs or containerfs.
    EphemeralStorage,
    /// Inodes of the same.
    Inodes,
    /// Process ids.
    Pids,
}

/// The figures of one offender.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Figures {
    /// The request, verbatim as printed.
    #[serde(default)]
    pub request: Option<QuantityText>,
    /// A bound on the usage, such as `>=200Mi`.
    #[serde(default)]
    pub usage: Option<UsageBound>,
}

/// An emptyDir volume over its `sizeLimit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VolumeLimit {
    /// The volume.
    pub volume: Name,
    /// Its limit, verbatim as printed.
    pub limit: QuantityText,
}

/// A container over its ephemeral-storage limit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ContainerLimit {
    /// The container.
    pub container: Name,
    /// Its limit, verbatim as printed.
    pub limit: QuantityText,
}

/// The three places where the kubelet says that it evicted a pod.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// The `Evicted` event.
    Event,
    /// `status.reason` and `status.message`.
    Status,
    /// The `DisruptionTarget` condition.
    Condition,
}

/// There, or not there.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// There.
    Present,
    /// Not there.
    Absent,
}

/// The API's refusal of a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Refused {
    /// The HTTP status.
    pub code: u16,
    /// The reason of the Status, such as `Invalid`.
    pub reason: String,
    /// The whole message; `$(POD)` stands for the pod's name.
    pub message: String,
}

/// What a kubelet with a known bug shows instead. What is not stated is as in `expect`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KnownBug {
    /// The kubelets that have the bug.
    pub kubelet: KubeletReq,
    /// Where upstream tracks it, if anywhere.
    #[serde(default)]
    pub upstream: Option<Upstream>,
    /// The bug in one sentence.
    #[serde(default)]
    pub about: Option<String>,
    /// The pods that are evicted instead; messages then speak of the first of these.
    #[serde(default)]
    pub evicted: Option<Vec<Name>>,
    /// What the message says instead; what it does not state is as in `expect.message`.
    #[serde(default)]
    pub message: Option<Message>,
    /// The least time from the Evicted event to the end of the pod's last container.
    #[serde(default)]
    pub killed_after: Option<Duration>,
    /// Facts instead of those of the same `what`.
    #[serde(default)]
    pub that: Vec<Fact>,
    /// Not every one that `expect.rate` counts is right: how the bug shows that comes by chance.
    #[serde(default)]
    pub sometimes: bool,
}
