//! An entry in the list of clusters.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kind::KnownCluster;
use crate::served::ServedCluster;

/// A cluster that evictlab created, as `evictlab cluster list --json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "backend", rename_all = "kebab-case")]
pub enum ListedCluster {
    /// An embedded cluster that a process serves.
    Embedded(ServedCluster),
    /// A kind cluster.
    Kind(Box<KnownCluster>),
}
