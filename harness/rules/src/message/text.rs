//! The messages, and how they are written: the const block of `pkg/kubelet/eviction/helpers.go`, 1.26 to 1.36.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::threshold::{NodeCondition, Resource};

/// What an Evicted event, `status.message` or a `DisruptionTarget` condition says. Every message ends with a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EvictionMessage {
    /// The node was low on a resource.
    NodePressure(NodePressure),
    /// An emptyDir grew over its limit.
    EmptyDirLimit {
        /// The volume.
        volume: String,
        /// Its limit.
        limit: Quantity,
    },
    /// A pod grew over the sum of its containers' limits.
    PodLimit {
        /// The sum.
        limit: Quantity,
    },
    /// A container grew over its limit.
    ContainerLimit {
        /// The container.
        container: String,
        /// Its limit.
        limit: Quantity,
    },
    /// A pod was not admitted to a node under pressure.
    Rejected {
        /// The node's conditions, in the order given, which is arbitrary.
        conditions: Vec<NodeCondition>,
        /// Whether it is said as in `status.message`, with `Pod was rejected: ` before it.
        in_status: bool,
    },
}

/// The message of a node-pressure eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePressure {
    /// What the node was low on.
    pub resource: Resource,
    /// The threshold and what was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<ThresholdClause>,
    /// The pod over its pod-level request (1.34 and newer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Offender>,
    /// The containers over their requests, in the message's order, which is arbitrary.
    pub containers: Vec<Offender>,
}

/// "Threshold quantity: …, available: …".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdClause {
    /// The threshold.
    pub quantity: Quantity,
    /// What was left.
    pub available: Quantity,
}

/// Somebody who uses more than asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offender {
    /// The container, or the pod.
    pub name: String,
    /// What it used.
    pub usage: Quantity,
    /// What it asked for.
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
                let before = if *in_status { "Pod was rejected: " } else { "" };
                let names: Vec<_> = conditions.iter().map(|condition| condition.as_str()).collect();
                write!(f, "{before}The node had condition: [{}]. ", names.join(" "))
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
        let sentence = |f: &mut fmt::Formatter<'_>, who, Offender { name, usage, request }: &Offender| {
            write!(
                f,
                "{who} {name} was using {usage}, request is {request}, has larger consumption of {resource}. "
            )
        };
        if let Some(pod) = &self.pod {
            sentence(f, "Pod", pod)?;
        }
        self.containers.iter().try_for_each(|container| sentence(f, "Container", container))
    }
}
