//! What is done while a case runs, one step after the other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::values::{Duration, Name, QuantityText};
use crate::cel::Expression;

/// One step. It waits until `when` holds, then for `wait`, then does the one thing that it states; a step that states nothing only waits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Step {
    /// What it is good for, for a person who follows the run.
    #[serde(default)]
    pub about: Option<String>,
    /// Under which name the API's answer is kept in `answers`: `{code, reason, message}`, code 200 or 201 where it did as asked.
    #[serde(default)]
    pub answer: Option<Name>,
    /// It waits until this is true.
    #[serde(default)]
    pub when: Option<Expression>,
    /// It waits so long, after `when`.
    #[serde(default)]
    pub wait: Option<Duration>,
    /// Makes an object of any kind, a pod included, in the case's namespace.
    #[serde(default)]
    pub create: Option<Map<String, Value>>,
    /// Deletes a pod.
    #[serde(default)]
    pub delete: Option<Deletion>,
    /// Asks for a pod's eviction by the API (`pods/eviction`).
    #[serde(default)]
    pub evict: Option<Name>,
    /// Adds a taint to the node.
    #[serde(default)]
    pub taint: Option<Taint>,
    /// Removes the taints of this key from the node.
    #[serde(default)]
    pub untaint: Option<String>,
    /// Cordons the node and evicts the case's pods by the API, as `kubectl drain` does.
    #[serde(default)]
    pub drain: bool,
    /// Lets the node be scheduled to again.
    #[serde(default)]
    pub uncordon: bool,
    /// Stops everything on the node (`docker pause`).
    #[serde(default)]
    pub pause: bool,
    /// Lets it go on.
    #[serde(default)]
    pub resume: bool,
    /// Restarts the kubelet with these fields of its configuration changed beside those of the case.
    #[serde(default)]
    pub configure: Option<Map<String, Value>>,
    /// Reads the logs of a pod's containers into `logs`: a pod that is evicted may keep none.
    #[serde(default)]
    pub read_logs: Option<Name>,
}

/// A pod to be deleted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Deletion {
    /// The pod.
    pub pod: Name,
    /// In place of the pod's own grace period.
    #[serde(default)]
    pub grace_period: Option<Duration>,
}

/// A taint.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Taint {
    /// Its key, such as `evictlab.dev/out`.
    pub key: String,
    /// Its value.
    #[serde(default)]
    pub value: Option<String>,
    /// Its effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// What is done with the node before the case's pods, and undone after the case.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NodeSetup {
    /// A bound on the memory of the whole node, as Docker sets it on a kind node's container; the kubelet does not see it.
    #[serde(default)]
    pub memory: Option<QuantityText>,
    /// Extended resources that the node has while the case runs, such as `evictlab.dev/slots: "2"`.
    #[serde(default)]
    pub capacity: BTreeMap<String, QuantityText>,
}

/// How the case's pods come to their node.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placed {
    /// By `spec.nodeName`, past the scheduler, with every taint tolerated.
    #[default]
    Bound,
    /// By the scheduler, which may choose this node only; taints count.
    Scheduled,
}

impl Step {
    /// The names of the things that it does.
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

    /// Whether it does something to the node itself.
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
