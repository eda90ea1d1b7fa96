//! The explanation of one eviction.

use evictlab_rules::quantity::Quantity;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::stated_version::StatedVersion;

/// The reason for an eviction, and the consistency of its records. `Display` renders it as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `namespace/name`, if known.
    pub pod: Option<String>,
    /// Name of the node, if known.
    pub node: Option<String>,
    /// Time of the Evicted event, if known.
    pub at: Option<Timestamp>,
    /// Kubelet version, if known; without the patch if only the minor version is.
    pub kubelet: Option<StatedVersion>,
    /// The eviction message, verbatim; `None` if it is not known.
    pub message: Option<String>,
    /// The reason, in sentences.
    pub why: Vec<String>,
    /// Usage and request of the whole pod. Kubelets 1.34 and newer state them for pods with a
    /// pod-level memory request.
    pub pod_level: Option<PodLevelReport>,
    /// The containers, with the reason why the message names them or not.
    pub containers: Vec<ContainerReport>,
    /// Consistency of message, status, condition and annotations.
    pub checks: Vec<ConsistencyCheck>,
    /// Known bugs that match.
    pub bugs: Vec<MatchingBug>,
    /// Input that would make the explanation more complete.
    pub missing: Vec<String>,
    /// Subject of the explanation, if `pod` is not known.
    #[serde(skip)]
    pub unnamed: Unnamed,
}

/// Subject of an explanation without the name of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unnamed {
    /// A pod.
    #[default]
    Pod,
    /// A process that may be of a pod.
    Process,
    /// A process that is not of a pod.
    ProcessOutsideOfPods,
}

impl Unnamed {
    /// The subject as words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "A pod",
            Self::Process => "A process",
            Self::ProcessOutsideOfPods => "A process outside of pods",
        }
    }
}

/// Kind of a container, by its list in the pod spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerKind {
    /// `containers`.
    Regular,
    /// `initContainers` with `restartPolicy: Always`.
    Sidecar,
    /// Other `initContainers`.
    Init,
    /// `ephemeralContainers`.
    Ephemeral,
}

impl ContainerKind {
    /// Name of the kind, as serialized.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Sidecar => "sidecar",
            Self::Init => "init",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// A container, and why the message names it or not.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerReport {
    /// Name of the container.
    pub name: String,
    /// Kind of the container; `None` without the pod's spec.
    pub kind: Option<ContainerKind>,
    /// True if the message names the container.
    pub named: bool,
    /// Usage according to the message.
    pub usage: Option<Quantity>,
    /// Request according to the message, else to the spec.
    pub request: Option<Quantity>,
    /// Reason why the message names the container or not.
    pub why: String,
}

/// The usage of a pod with a pod-level request, according to the message.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodLevelReport {
    /// Name of the pod.
    pub name: String,
    /// Usage of the pod.
    pub usage: Quantity,
    /// The pod-level request.
    pub request: Quantity,
    /// Difference of usage and request, in words.
    pub why: String,
}

/// A comparison of two records of an eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConsistencyCheck {
    /// True if the records agree.
    pub agrees: bool,
    /// The result in one sentence.
    pub text: String,
}

/// A known bug that matches an eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Bug")]
pub struct MatchingBug {
    /// Upstream issue as `owner/repository#number`; `None` if the bug is not reported.
    pub upstream: Option<&'static str>,
    /// Description of the bug.
    pub about: &'static str,
    /// Why the bug matches the eviction.
    #[serde(rename = "because")]
    pub reason: String,
    /// The case that reproduces it: `evictlab run CASE`.
    pub case: &'static str,
}
