//! The record of a cluster: written to a state file before its first container is created, and then
//! to its nodes.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::docker::docker_host;
use crate::owner::Owner;

/// Path of the record in a node.
pub const NODE_FILE: &str = "/kind/evictlab.json";

/// A cluster and its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Name of the cluster.
    pub cluster: String,
    /// Id of the run that created it.
    pub run: String,
    /// Process that uses it, or used it last.
    pub owner: Owner,
    /// Creation time.
    pub created: Timestamp,
    /// Time after which it may be removed by a host that cannot check its owner.
    pub deadline: Timestamp,
    /// True if it outlives its owner.
    pub kept: bool,
    /// Address of the Docker daemon.
    pub docker_host: String,
    /// Labels of the kubelets of its workers.
    pub kubelets: Vec<String>,
}

/// State of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterState {
    /// The owner is running.
    Live,
    /// The cluster is not in use and was kept intentionally.
    Kept,
    /// The owner has exited without deleting the cluster.
    Dead,
}

impl std::fmt::Display for ClusterState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Live => "live",
            Self::Kept => "kept",
            Self::Dead => "dead",
        })
    }
}

impl ClusterRecord {
    /// Creates the record of a new cluster. After `lifetime` any host may remove the cluster.
    pub fn new(cluster: &str, run: &str, owner: Owner, kubelets: Vec<String>, lifetime: Duration) -> Self {
        let created = Timestamp::now();
        let deadline = created.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        Self {
            cluster: cluster.to_owned(),
            run: run.to_owned(),
            owner,
            created,
            deadline,
            kept: false,
            docker_host: docker_host(),
            kubelets,
        }
    }

    /// State of the cluster.
    pub fn state(&self) -> ClusterState {
        let is_remote = !self.owner.is_here();
        match (self.owner.alive(), self.kept) {
            (true, _) if is_remote && !self.kept && Timestamp::now() > self.deadline => ClusterState::Dead,
            (true, true) if is_remote => ClusterState::Kept,
            (true, _) => ClusterState::Live,
            (false, true) => ClusterState::Kept,
            (false, false) => ClusterState::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(owner: Owner) -> ClusterRecord {
        ClusterRecord::new("evictlab-a", "run", owner, vec!["v1.32.13".to_owned()], Duration::from_secs(3600))
    }

    #[test]
    fn state_follows_the_owner() {
        let gone = Owner { started: "earlier".to_owned(), ..Owner::this() };
        let elsewhere = Owner { host: "another".to_owned(), ..Owner::this() };
        let rows = [
            (Owner::this(), false, false, ClusterState::Live),
            (Owner::this(), true, false, ClusterState::Live),
            (gone.clone(), false, false, ClusterState::Dead),
            (gone, true, true, ClusterState::Kept),
            (elsewhere.clone(), false, false, ClusterState::Live),
            (elsewhere.clone(), false, true, ClusterState::Dead),
            (elsewhere, true, true, ClusterState::Kept),
        ];
        for (owner, kept, overdue, state) in rows {
            let mut record = ClusterRecord { kept, ..record(owner) };
            if overdue {
                record.deadline = Timestamp::UNIX_EPOCH;
            }
            assert_eq!(record.state(), state, "{record:?}");
        }
    }
}
