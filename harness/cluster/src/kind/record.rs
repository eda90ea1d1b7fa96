//! The record of a cluster: written to a state file before its first container is created, and then
//! to its nodes.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::docker::docker_host;
use crate::owner::{ABANDONED_AFTER, Owner};

/// Age of the last heartbeat from which on a run counts as dead. Commands in a node under pressure
/// may take a minute.
const HEARTBEAT_LIFETIME: Duration = Duration::from_secs(300);

/// Path of the record in a node.
pub(super) const NODE_FILE: &str = "/kind/evictlab.json";

/// A cluster and its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRecord {
    /// Name of the cluster.
    pub cluster: String,
    /// Id of the run that created it.
    pub run: String,
    /// Process that uses it, or used it last.
    pub owner: Owner,
    /// Creation time.
    pub created: Timestamp,
    /// Time after which it may be removed by a host that cannot check its owner, if its nodes have
    /// no heartbeat.
    pub deadline: Timestamp,
    /// True if it outlives its owner.
    pub kept: bool,
    /// Address of the Docker daemon.
    #[serde(alias = "docker_host")]
    pub docker_host: String,
    /// Id of the Docker daemon. Hosts with a shared home directory have equal addresses.
    #[serde(default, alias = "docker_id")]
    pub docker_id: String,
    /// Labels of the kubelets of its workers.
    pub kubelets: Vec<String>,
    /// Ids of its containers, as far as they were created before the run ended.
    #[serde(default, alias = "node_ids", skip_serializing_if = "Vec::is_empty")]
    pub node_ids: Vec<String>,
}

/// The last heartbeat in the nodes of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LastHeartbeat {
    /// No node has one, or the nodes were not asked.
    #[default]
    None,
    /// The time since the last one.
    Ago(Duration),
    /// A node does not answer, as under pressure.
    Unreadable,
}

/// State of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterState {
    /// The owner is running.
    Live,
    /// The cluster is not in use and was kept intentionally.
    Kept,
    /// The cluster is kept, and its nodes do not run.
    Stopped,
    /// The owner has exited without deleting the cluster.
    Dead,
}

impl std::fmt::Display for ClusterState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Live => "live",
            Self::Kept => "kept",
            Self::Stopped => "stopped",
            Self::Dead => "dead",
        })
    }
}

impl ClusterRecord {
    /// Creates the record of a new cluster of a Docker daemon.
    pub fn new(docker_id: &str, cluster: &str, run: &str, owner: Owner, kubelets: Vec<String>) -> Self {
        let created = Timestamp::now();
        let deadline = created.saturating_add(ABANDONED_AFTER).unwrap_or(Timestamp::MAX);
        Self {
            cluster: cluster.to_owned(),
            run: run.to_owned(),
            owner,
            created,
            deadline,
            kept: false,
            docker_host: docker_host(),
            docker_id: docker_id.to_owned(),
            kubelets,
            node_ids: Vec::new(),
        }
    }

    /// State of the cluster: by its owner's process if that can be checked, else by the time since
    /// the last heartbeat in its nodes. Without a heartbeat, a cluster counts as live until its
    /// deadline; with one that cannot be read, it counts as live.
    pub(super) fn state(&self, heartbeat: LastHeartbeat) -> ClusterState {
        let is_live = match heartbeat {
            _ if self.owner.is_local() => self.owner.is_alive(),
            LastHeartbeat::Ago(age) => age < HEARTBEAT_LIFETIME,
            LastHeartbeat::Unreadable => true,
            LastHeartbeat::None => !self.kept && Timestamp::now() <= self.deadline,
        };
        match (is_live, self.kept) {
            (true, _) => ClusterState::Live,
            (false, true) => ClusterState::Kept,
            (false, false) => ClusterState::Dead,
        }
    }

    /// Returns whether the cluster belongs to a Docker daemon.
    pub(super) fn is_on(&self, docker_id: &str) -> bool {
        match self.docker_id.as_str() {
            "" => self.docker_host == docker_host(),
            id => id == docker_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(owner: Owner) -> ClusterRecord {
        ClusterRecord::new("daemon", "evictlab-a", "run", owner, vec!["v1.32.13".to_owned()])
    }

    #[test]
    fn state_follows_the_owner() {
        let gone = Owner { started: Some("earlier".to_owned()), ..Owner::current() };
        let elsewhere = Owner { host: "another".to_owned(), ..Owner::current() };
        let contained = Owner { scope: "boot pid:[1]".to_owned(), ..gone.clone() };
        use ClusterState::{Dead, Kept, Live};
        // Owner, kept, overdue, age of the heartbeat in seconds.
        let rows = [
            (Owner::current(), false, false, None, Live),
            (Owner::current(), true, false, Some(900), Live),
            (gone.clone(), false, false, Some(1), Dead),
            (gone, true, true, None, Kept),
            (elsewhere.clone(), false, false, None, Live),
            (elsewhere.clone(), false, true, None, Dead),
            (elsewhere.clone(), false, true, Some(60), Live),
            (elsewhere.clone(), false, false, Some(301), Dead),
            (elsewhere.clone(), true, true, None, Kept),
            (elsewhere, true, true, Some(60), Live),
            (contained.clone(), false, false, Some(60), Live),
            (contained, false, false, Some(301), Dead),
        ];
        for (owner, kept, overdue, heartbeat, state) in rows {
            let mut record = ClusterRecord { kept, ..record(owner) };
            if overdue {
                record.deadline = Timestamp::UNIX_EPOCH;
            }
            let ago = |seconds| LastHeartbeat::Ago(Duration::from_secs(seconds));
            let heartbeat = heartbeat.map_or(LastHeartbeat::None, ago);
            assert_eq!(record.state(heartbeat), state, "{record:?} {heartbeat:?}");
            if !record.owner.is_local() {
                assert_eq!(record.state(LastHeartbeat::Unreadable), Live, "{record:?}");
            }
        }
    }
}
