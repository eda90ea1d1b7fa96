//! The texts of messages: the const block of `pkg/kubelet/eviction/helpers.go`, 1.26 to 1.37.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::threshold::{NodeCondition, Resource};

/// Message of an Evicted event, of `status.message` or of a `DisruptionTarget` condition. Every
/// message ends with a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EvictionMessage {
    /// Eviction because the node was low on a resource.
    NodePressure(NodePressure),
    /// Eviction because an emptyDir volume exceeded its size limit.
    EmptyDirLimit {
        /// Volume name.
        volume: String,
        /// Size limit.
        limit: Quantity,
    },
    /// Eviction because the pod exceeded the sum of its containers' ephemeral-storage limits.
    PodLimit {
        /// Sum of the limits.
        limit: Quantity,
    },
    /// Eviction because a container exceeded its ephemeral-storage limit.
    ContainerLimit {
        /// Container name.
        container: String,
        /// Limit.
        limit: Quantity,
    },
    /// Rejection by the admission of a node under pressure.
    Rejected {
        /// Node conditions, in the order of the message, which is arbitrary.
        conditions: Vec<NodeCondition>,
        /// True for the form in `status.message`, which begins with `Pod was rejected: `.
        in_status: bool,
    },
}

/// Message of a node-pressure eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePressure {
    /// Resource that the node was low on.
    pub resource: Resource,
    /// Met threshold and available amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<ThresholdClause>,
    /// Pod with a pod-level request (1.34 and newer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Offender>,
    /// Containers over their requests, in the order of the message, which is arbitrary.
    pub containers: Vec<Offender>,
}

/// The clause `Threshold quantity: …, available: …`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdClause {
    /// Threshold.
    pub quantity: Quantity,
    /// Available amount.
    pub available: Quantity,
}

/// A container or pod that the message names for using more than its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offender {
    /// Name of the container or pod.
    pub name: String,
    /// Usage.
    pub usage: Quantity,
    /// Request.
    pub request: Quantity,
}

impl fmt::Display for EvictionMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodePressure(pressure) => pressure.fmt(f),
            Self::EmptyDirLimit { volume, limit } => {
                write!(f, "Usage of EmptyDir volume \"{volume}\" exceeds the limit \"{limit}\". ")
            }
            Self::PodLimit { limit } => {
                write!(f, "Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")
            }
            Self::ContainerLimit { container, limit } => {
                write!(f, "Container {container} exceeded its local ephemeral storage limit \"{limit}\". ")
            }
            Self::Rejected { conditions, in_status } => {
                let prefix = if *in_status { "Pod was rejected: " } else { "" };
                let names: Vec<_> = conditions.iter().map(|condition| condition.as_str()).collect();
                write!(f, "{prefix}The node had condition: [{}]. ", names.join(" "))
            }
        }
    }
}

impl fmt::Display for NodePressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.resource;
        write!(f, "The node was low on resource: {resource}. ")?;
        if let Some(ThresholdClause { quantity, available }) = &self.threshold {
            write!(f, "Threshold quantity: {quantity}, available: {available}. ")?;
        }
        let sentence = |f: &mut fmt::Formatter<'_>, kind, Offender { name, usage, request }: &Offender| {
            write!(
                f,
                "{kind} {name} was using {usage}, request is {request}, has larger consumption of {resource}. "
            )
        };
        if let Some(pod) = &self.pod {
            sentence(f, "Pod", pod)?;
        }
        self.containers.iter().try_for_each(|container| sentence(f, "Container", container))
    }
}
