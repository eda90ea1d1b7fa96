//! Heartbeat of the run that uses a cluster: a file in a node, whose age shows other hosts and
//! other containers that the run is active. They cannot check its process.

use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::containers::is_control_plane;
use super::record::{ClusterRecord, ClusterState, LastHeartbeat};
use crate::docker::{Container, Docker};
use crate::owner::Owner;

/// The file. Its contents do not matter.
const FILE: &str = "/kind/evictlab-heartbeat";
/// Interval of heartbeats.
const INTERVAL: Duration = Duration::from_secs(30);
/// Prints the age of a file in seconds, by the clock of the node.
const PRINT_AGE: &str = r#"echo $(( $(date +%s) - $(stat -c %Y "$1") ))"#;

/// Heartbeat of this process in a node, until it is dropped.
pub(super) struct Heartbeat {
    _task: AbortOnDropHandle<()>,
}

impl Heartbeat {
    /// Begins heartbeats in the control plane, which cases do not put under pressure; `None` for a
    /// cluster without containers. Failures are ignored: a run is not ended by them.
    pub(super) fn start(docker: &Docker, nodes: &[Container]) -> Option<Self> {
        let node = nodes.iter().find(|node| is_control_plane(node)).or(nodes.first())?.id.clone();
        let docker = docker.clone();
        let beat = async move {
            loop {
                let _failed = docker.run(&node, &["touch", FILE]).await;
                tokio::time::sleep(INTERVAL).await;
            }
        };
        Some(Self { _task: AbortOnDropHandle::new(tokio::spawn(beat)) })
    }
}

/// Removes the heartbeat of a run that has ended.
pub(super) async fn remove_heartbeat(docker: &Docker, nodes: &[Container]) {
    for node in nodes.iter().filter(|node| node.running) {
        // Its age shows later that the run has ended.
        let _failed = docker.run(&node.id, &["rm", "-f", FILE]).await;
    }
}

/// The owner of a cluster and the last heartbeat in its nodes, which were read before the lock of
/// the record is taken: reading a heartbeat may take a minute.
pub(super) struct ExaminedOwner {
    owner: Owner,
    heartbeat: LastHeartbeat,
}

impl ExaminedOwner {
    /// Reads the last heartbeat in the nodes of a cluster if the process of its owner cannot be
    /// checked.
    pub(super) async fn of(docker: &Docker, record: &ClusterRecord, nodes: &[Container]) -> Self {
        let heartbeat =
            if record.owner.is_local() { LastHeartbeat::None } else { last_heartbeat(docker, nodes).await };
        Self { owner: record.owner.clone(), heartbeat }
    }

    /// Returns the state of the cluster by its present record. Another owner than the examined one
    /// has taken the cluster since: its heartbeat is not known, so the owner counts as live if its
    /// process cannot be checked.
    pub(super) fn state(&self, record: &ClusterRecord) -> ClusterState {
        record.state(if record.owner == self.owner { self.heartbeat } else { LastHeartbeat::Unreadable })
    }
}

/// Reads the last heartbeat in any of the nodes.
async fn last_heartbeat(docker: &Docker, nodes: &[Container]) -> LastHeartbeat {
    let mut last = LastHeartbeat::None;
    for node in nodes.iter().filter(|node| node.running) {
        if let Ok(None) = docker.read_file(&node.id, FILE).await {
            continue;
        }
        let printed = docker.run(&node.id, &["sh", "-c", PRINT_AGE, "print-age", FILE]).await;
        match printed.ok().and_then(|seconds| seconds.trim().parse::<i64>().ok()) {
            Some(seconds) => {
                return LastHeartbeat::Ago(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
            }
            None => last = LastHeartbeat::Unreadable,
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_owner_elsewhere_is_live() {
        let elsewhere = |pid| Owner { host: "another".to_owned(), pid, ..Owner::current() };
        let record = |owner| {
            let record = ClusterRecord::new("daemon", "lab", "run", owner, vec![]);
            ClusterRecord { kept: true, ..record }
        };
        let examined = ExaminedOwner { owner: elsewhere(1), heartbeat: LastHeartbeat::None };
        assert_eq!(examined.state(&record(elsewhere(1))), ClusterState::Kept);
        assert_eq!(
            examined.state(&record(elsewhere(2))),
            ClusterState::Live,
            "it has just taken the cluster"
        );
        let dead = Owner { started: Some("earlier".to_owned()), ..Owner::current() };
        assert_eq!(examined.state(&record(dead)), ClusterState::Kept, "its process can be checked");
    }
}
