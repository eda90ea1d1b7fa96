//! Heartbeat of the run that uses a cluster: a file in a node, whose age shows other hosts and
//! other containers that the run is active. They cannot check its process.

use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::containers::is_control_plane;
use super::record::LastHeartbeat;
use crate::docker::{Container, Docker};

/// The file. Its contents do not matter.
const FILE: &str = "/kind/evictlab-heartbeat";
/// Interval of heartbeats.
const INTERVAL: Duration = Duration::from_secs(30);
/// Prints the age of the file in seconds, by the clock of the node.
const PRINT_AGE: &str = "echo $(( $(date +%s) - $(stat -c %Y /kind/evictlab-heartbeat) ))";

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

/// Reads the last heartbeat in any of the nodes.
pub(super) async fn last_heartbeat(docker: &Docker, nodes: &[Container]) -> LastHeartbeat {
    let mut last = LastHeartbeat::None;
    for node in nodes.iter().filter(|node| node.running) {
        if let Ok(None) = docker.read_file(&node.id, FILE).await {
            continue;
        }
        let printed = docker.run(&node.id, &["sh", "-c", PRINT_AGE]).await;
        match printed.ok().and_then(|seconds| seconds.trim().parse::<i64>().ok()) {
            Some(seconds) => {
                return LastHeartbeat::Ago(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
            }
            None => last = LastHeartbeat::Unreadable,
        }
    }
    last
}
