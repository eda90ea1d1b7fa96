//! The outcomes of `evictlab gc`, as JSON.
//!
//! Clean-up itself is in other files: kind clusters in `cluster/src/kind/gc.rs`, namespaces of
//! existing clusters in `cluster/src/existing/gc.rs`, results in `report/src/retention.rs`, and the
//! command in `cli/src/commands/gc.rs`.

use schemars::JsonSchema;
use serde::Serialize;

/// A leftover and its outcome, as `evictlab gc --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcEntry {
    /// Kind of the leftover.
    pub kind: LeftoverKind,
    /// Name of the cluster or container, id of the run, or path of the directory.
    pub name: String,
    /// Outcome.
    pub outcome: RemovalOutcome,
    /// Reason of the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Number of namespaces of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<usize>,
}

/// Kinds of leftovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverKind {
    /// A kind cluster.
    Cluster,
    /// A container that belongs to no cluster.
    Container,
    /// The namespaces of a run in an existing cluster.
    Run,
    /// A run directory.
    Directory,
}

/// Outcome of a leftover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RemovalOutcome {
    /// The leftover was removed.
    Removed,
    /// The leftover is removed without `--dry-run`.
    WouldBeRemoved,
    /// A kept cluster, from which leftovers of dead runs are removed without `--dry-run`.
    WouldBeKept,
    /// A kept cluster, from which leftovers of dead runs were removed.
    Kept,
    /// The leftover was not changed.
    LeftAlone,
    /// The leftover could not be removed.
    Failed,
}

impl GcEntry {
    /// Returns an outcome without a reason.
    pub fn new(kind: LeftoverKind, name: impl Into<String>, outcome: RemovalOutcome) -> Self {
        Self { kind, name: name.into(), outcome, why: None, namespaces: None }
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(self, why: impl ToString) -> Self {
        Self { why: Some(why.to_string()), ..self }
    }
}
