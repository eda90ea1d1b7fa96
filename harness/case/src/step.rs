//! The steps of a case.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::expression::Expression;
use crate::values::{Duration, Name, QuantityText};

/// A step. It waits until `when` holds, then for the time `wait`, then runs its action. A step
/// without an action only waits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Step {
    /// Purpose of the step, shown while the case runs.
    #[serde(default)]
    pub about: Option<String>,
    /// Name under which `answers` keeps the answer of the API: `{code, reason, message}`, with the
    /// code 200 or 201 on success.
    #[serde(default)]
    pub answer: Option<Name>,
    /// Condition to wait for.
    #[serde(default)]
    pub when: Option<Expression>,
    /// Time to wait after `when` holds.
    #[serde(default)]
    pub wait: Option<Duration>,
    /// Creates an object of any kind, such as a pod, in the namespace of the case.
    #[serde(default)]
    pub create: Option<Map<String, Value>>,
    /// Deletes a pod.
    #[serde(default)]
    pub delete: Option<Deletion>,
    /// Evicts a pod through the API (`pods/eviction`).
    #[serde(default)]
    pub evict: Option<Name>,
    /// Adds a taint to the node.
    #[serde(default)]
    pub taint: Option<Taint>,
    /// Removes the taints with this key from the node.
    #[serde(default)]
    pub untaint: Option<String>,
    /// Cordons the node and evicts the pods of the case through the API, as `kubectl drain` does.
    #[serde(default)]
    pub drain: bool,
    /// Uncordons the node.
    #[serde(default)]
    pub uncordon: bool,
    /// Pauses all processes of the node (`docker pause`).
    #[serde(default)]
    pub pause: bool,
    /// Resumes a paused node.
    #[serde(default)]
    pub resume: bool,
    /// Restarts the kubelet with these fields of its configuration changed, in addition to those
    /// of the case.
    #[serde(default)]
    pub configure: Option<Map<String, Value>>,
    /// Reads the logs of the containers of a pod into `logs`; the logs of an evicted pod may be
    /// lost.
    #[serde(default)]
    pub read_logs: Option<Name>,
}

/// Deletion of a pod.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Deletion {
    /// Name of the pod.
    pub pod: Name,
    /// Grace period, instead of that of the pod.
    #[serde(default)]
    pub grace_period: Option<Duration>,
}

/// A taint.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
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
    /// Extended resources of the node, such as `evictlab.dev/slots: "2"`.
    #[serde(default)]
    pub capacity: BTreeMap<String, QuantityText>,
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

impl Step {
    /// Returns the names of the actions.
    pub fn actions(&self) -> Vec<&'static str> {
        let all = [
            ("create", self.create.is_some()),
            ("delete", self.delete.is_some()),
            ("evict", self.evict.is_some()),
            ("taint", self.taint.is_some()),
            ("untaint", self.untaint.is_some()),
            ("drain", self.drain),
            ("uncordon", self.uncordon),
            ("pause", self.pause),
            ("resume", self.resume),
            ("configure", self.configure.is_some()),
            ("read-logs", self.read_logs.is_some()),
        ];
        all.into_iter().filter(|(_, stated)| *stated).map(|(name, _)| name).collect()
    }

    /// Reports whether the step changes the node.
    pub fn changes_node(&self) -> bool {
        self.taint.is_some()
            || self.untaint.is_some()
            || self.drain
            || self.uncordon
            || self.pause
            || self.resume
            || self.configure.is_some()
    }
}
